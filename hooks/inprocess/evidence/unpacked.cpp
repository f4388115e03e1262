// An argument that came in a dictionary which nobody has kept: `loss(**replay.batch(8))`. The function that made the
// dictionary puts it there, beside others. Read from the source of that function.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/neighbours.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// "self.inputs(x)" of `**self.inputs(x)`, also by the variable that it gave its value to above.
std::string unpacked_call(const SourceLines& lines, const trace::Position& at, std::string_view argument) {
  constexpr std::string_view kUnpacks = "**";
  if (!argument.starts_with(kUnpacks)) return "";
  const std::string_view given = trimmed(argument.substr(kUnpacks.size()));
  if (!is_identifier(given)) return std::string(given);
  return only_value_above(lines, at.line, given);
}

// The function that gives the dictionary for which the call at `at` is given what is not written out; null where that
// is not known.
const void* function_unpacked(const Inquiry& inquiry, const trace::Position& at) {
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  const auto call = call_text(code_text(lines, at));
  if (!call) return nullptr;
  const void* found = nullptr;
  for (const std::string& argument : call->arguments) {
    const auto made_by = call_text(unpacked_call(lines, at, argument));
    if (!made_by) continue;
    if (found != nullptr) return nullptr;
    found = only_function(inquiry, made_by->callee.substr(made_by->callee.rfind('.') + 1));
  }
  return found;
}

// The text of a function that returns a dictionary.
class MakesDict {
 public:
  explicit MakesDict(const void* code) : at_(position_of(code, 0)), lines_(files_.whole(at_.file)) {
    for (definition_ = code_first_line(code); trimmed(lines_[definition_]).starts_with('@');) ++definition_;
    end_ = end_of_block(lines_, definition_ + 1, definition_);
    for (int k = definition_ + 1; k <= end_; k = end_of_statement(lines_, k) + 1) {
      constexpr std::string_view kReturn = "return ";
      const std::string statement = is_blank(lines_[k]) ? "" : statement_at(lines_, k);
      if (!statement.starts_with(kReturn)) continue;
      const std::string value = statement.substr(kReturn.size());
      returned_ = returned_.empty() || returned_ == value ? value : "?";
    }
  }

  // The only line that puts an entry of this name there; none where several may have.
  std::optional<trace::Position> put_of(const std::string& key) const {
    int found = 0;
    for (int k = definition_ + 1; k <= end_; k = end_of_statement(lines_, k) + 1) {
      if (is_blank(lines_[k]) || !puts(statement_at(lines_, k), key)) continue;
      if (found != 0) return std::nullopt;
      found = k;
    }
    if (found == 0) return std::nullopt;
    return position_at(at_.file, found, qualified_function(lines_, found));
  }

  const std::string& returned() const { return returned_; }

 private:
  // A dictionary that is written out takes in what a call of update() would.
  bool puts(const std::string& statement, const std::string& key) const {
    std::string display = assigned_to(statement, returned_).value_or("");
    if (statement == "return " + returned_) display = returned_;
    const bool written = is_dict_display(display) && display.find("}.") == display.npos;
    const auto all = puts_in(written ? returned_name() + ".update(" + display + ")" : statement);
    return std::ranges::any_of(
        all, [&](const auto& put) { return put.container == returned_name() && text_of_key(put.key) == key; });
  }
  std::string returned_name() const { return is_identifier(returned_) ? returned_ : "returned"; }

  SourceFiles files_;
  const trace::Position at_;
  const SourceLines lines_;
  int definition_ = 0;
  int end_ = 0;
  std::string returned_;
};

}  // namespace

void find_unpacked_entry(const Inquiry& inquiry, std::size_t operand) {
  const std::uint32_t at = inquiry.search.sighting(operand).place;
  if (at == kNoPlace || !inquiry.search.is_root(at) || inquiry.search.sighting(operand).gradient) return;
  const Place& root = inquiry.search.place(at);
  if (root.frame == nullptr || root.link.kind != LinkKind::local || root.link.name == nullptr) return;
  const std::string name = text_of(root.link.name);
  const void* caller = caller_of(root.frame);
  if (caller == nullptr || !has_named_argument(frame_code(root.frame), name)) return;
  const void* code = function_unpacked(inquiry, waits_at(caller));
  if (code == nullptr) return;
  const MakesDict maker(code);
  const auto put = maker.put_of(name);
  if (!put) return;
  Neighbours neighbours(inquiry, operand);
  neighbours.stop_after(static_cast<std::size_t>(code_all_arguments(frame_code(root.frame))));
  visit_frame(root.frame, false, neighbours);
  if (neighbours.report()) inquiry.found.add(trace::EvidenceKind::entry_put_at, operand, *put, maker.returned());
}

}  // namespace devsan::hooks
