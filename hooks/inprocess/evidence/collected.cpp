// Lists that a loop, or a method that is called over and over, fills in step: one of them with what is brought to the
// host, and one with what is left where it is. What is made of the two when they are full is on two devices.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::array<std::string_view, 8> kJoins = {"cat",    "concat", "concatenate", "stack",
                                                    "vstack", "hstack", "dstack",      "column_stack"};

// "scores" of `torch.cat(scores, dim=0)`; empty for any other call, and for what is no name, attribute or entry.
std::string list_joined(std::string_view code) {
  const auto call = call_text(code);
  if (!call || call->arguments.empty()) return "";
  const std::string_view function = std::string_view(call->callee).substr(call->callee.rfind('.') + 1);
  if (std::ranges::find(kJoins, function) == kJoins.end()) return "";
  const std::string& list = call->arguments.front();
  return device_reference(list) == list || entry_reference(list) ? list : std::string();
}

// The loop that fills a list, by the text of its function, or of its type for a list that `self` keeps.
class Collection {
 public:
  // `at` uses the list.
  Collection(const SourceLines& lines, const trace::Position& at, const std::string& list) : lines_(lines) {
    const int definition = enclosing_line(lines, at.line, "def ");
    const int type = list.starts_with("self.") ? enclosing_line(lines, definition, "class ") : 0;
    const int head = type != 0 ? type : definition;
    const int end = head != 0 ? end_of_block(lines, at.line, head) : lines.count();
    for (int k = head + 1; k <= end; ++k) {
      const auto put = put_at(k);
      if (!put || put->container != list || (head == 0 && enclosing_line(lines, k, "def ") != 0)) continue;
      ++count_;
      line_ = k;
      value_ = put->value;
    }
  }

  // The only line that puts something into it, as it is; 0 where that is not known.
  int line() const { return count_ == 1 && !brings(line_, value_) ? line_ : 0; }

  // A line of the same loop that puts into another list what it brings to the host; or of the same method, which is
  // called for each batch and fills lists of its object.
  int beside() const {
    const int loop = std::max(enclosing_line(lines_, line_, "for "), enclosing_line(lines_, line_, "while "));
    const int method = enclosing_line(lines_, line_, "def ");
    if (loop <= method && !list_at(line_).starts_with("self.")) return 0;
    const int head = std::max(loop, method);
    const int end = end_of_block(lines_, line_, head);
    for (int k = head + 1; k <= end; ++k) {
      const auto other = k != line_ ? put_at(k) : std::nullopt;
      if (other && brings(k, other->value)) return k;
    }
    return 0;
  }

  std::string list_at(int line) const { return put_at(line)->container; }

 private:
  // What a line puts into a list; entries of a dictionary are no list.
  std::optional<ContainerPut> put_at(int line) const {
    if (is_blank(lines_[line])) return std::nullopt;
    for (ContainerPut& put : puts_in(statement_at(lines_, line))) {
      if (put.key.empty()) return std::move(put);
    }
    return std::nullopt;
  }

  static bool brings(std::string_view text) {
    return trace::brings_to_host(text) || text.find(".to(\"cpu\"") != text.npos || text.find(".to('cpu'") != text.npos;
  }

  // `y = y.cpu()`, and then `labels.append(y)`, is the same.
  bool brings(int line, const std::string& value) const {
    if (brings(value)) return true;
    const int definition = enclosing_line(lines_, line, "def ");
    for (int k = line - 1; k > definition && is_identifier(value); --k) {
      const auto assigned = assigned_to(statement_at(lines_, k), value);
      if (assigned) return brings(*assigned);
    }
    return false;
  }

  const SourceLines& lines_;
  int count_ = 0;
  int line_ = 0;
  std::string value_;
};

bool report(const Inquiry& inquiry, std::size_t operand, const SourceLines& lines, const trace::Position& at,
            const std::string& list) {
  if (list.empty()) return false;
  const Collection collection(lines, at, list);
  const int filled = collection.line();
  const int beside = filled != 0 ? collection.beside() : 0;
  if (beside == 0) return false;
  const auto add = [&](trace::EvidenceKind kind, int line) {
    inquiry.found.add(kind, operand, position_at(at.file, line, qualified_function(lines, line)),
                      collection.list_at(line));
  };
  add(trace::EvidenceKind::collected_at, filled);
  add(trace::EvidenceKind::collected_beside_at, beside);
  return true;
}

// `np.concatenate(scores)`: the operand is still in the list.
bool find_entry(const Inquiry& inquiry, std::size_t operand) {
  std::uint32_t at = inquiry.search.sighting(operand).place;
  if (at == kNoPlace || !is_entry(inquiry.search.place(at).link.kind)) return false;
  const std::uint32_t list = inquiry.search.place(at).parent;
  while (!inquiry.search.is_root(at)) at = inquiry.search.place(at).parent;
  const void* frame = inquiry.search.place(at).frame;
  if (frame == nullptr || !runs_python(frame)) return false;
  SourceFiles files;
  const trace::Position waits = waits_at(frame);
  const SourceLines lines(files.whole(waits.file));
  return report(inquiry, operand, lines, waits, inquiry.search.path_to(list));
}

}  // namespace

void find_collected(const Inquiry& inquiry, std::size_t operand) {
  if (find_entry(inquiry, operand)) return;
  visit_history(inquiry.operands[operand],
                [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
                  return node.how == trace::How::derived &&
                         !report(inquiry, operand, lines, made, list_joined(code_text(lines, made)));
                });
}

}  // namespace devsan::hooks
