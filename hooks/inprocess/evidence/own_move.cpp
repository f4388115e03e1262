// An object that moves itself: `batch.to(device)` makes a new batch of what it keeps, and hands one part on as it is;
// or it moves what it keeps in place, and forgets one, as a module does that overrides cuda(). Read from the source of
// the method.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/own_parts.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kSeveral = 2;  // lines of a method that does not say by its name that it moves its object

std::string_view value_of(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == argument.npos || !is_identifier(argument.substr(0, equals))) return argument;
  return argument.substr(equals + 1);
}

// "x" and "data" of `self.data.to(x)`: what moves one attribute of the object.
bool moves_attribute(std::string_view value, std::string_view self) {
  const std::string own = std::string(self) + ".";
  return value.starts_with(own) && trace::calls_method(value, kOwnMovers);
}

// Whether a call makes another object of the same type: `Batch(…)`, `type(self)(…)`, `cls(…)`, `replace(self, …)`.
bool makes_another(const CallText& call, std::string_view type) {
  const std::string_view callee = call.callee;
  const std::string_view last = callee.substr(callee.rfind('.') + 1);
  return last == type || last == "__class__" || last == "cls" || last == "replace" || last == "_replace" ||
         callee.starts_with("type(");
}

// What a call is given, and the line where that is written.
struct GivenPart {
  std::string value;
  int line;
};

// `data = self.data.to(device)` where a call gives `data`, which nothing else in the method is assigned to.
GivenPart part_given(const SourceLines& lines, const trace::Position& call, std::string_view argument) {
  const std::string_view value = value_of(argument);
  const int begin = enclosing_line(lines, call.line, "def ");
  if (begin != 0 && is_identifier(value)) {
    const std::vector<int> bound = assignments_of(lines, value, begin, end_of_function(lines, call.line) + 1);
    if (bound.size() == 1 && bound.front() < call.line) {
      return {*assigned_to(statement_at(lines, bound.front()), value), bound.front()};
    }
  }
  int line = call.line;
  while (line < call.end_line && lines[line].find(value) == std::string_view::npos) ++line;
  return {std::string(value), line};
}

// The line of a method on which the attribute is handed on as it is to a new object, beside others that are moved.
std::optional<trace::Position> handed_on(const void* code, const void* holder, std::string_view attribute) {
  const std::string self = text_of(code_local_name(code, 0));
  const std::string part = self + "." + std::string(attribute);
  FileLines files;
  const ByteCode byte_code(code);
  for (const Instruction& one : byte_code.instructions()) {
    const trace::Position at = position_of(code, one.offset);
    const auto call = call_text(code_text(files.of(at.file), at));
    if (!call || !makes_another(*call, short_type_name(holder))) continue;
    int line = 0;
    bool beside = false;
    for (const std::string& argument : call->arguments) {
      const GivenPart given = part_given(files.of(at.file), at, argument);
      if (given.value == part) line = given.line;
      beside = beside || moves_attribute(given.value, self);
    }
    if (line != 0 && beside) return position_at(at.file, line, qualified_function(files.of(at.file), line));
  }
  return std::nullopt;
}

// Whether an attribute of an object, or a weight of a module that it is, was moved on a line.
class MovedOn final : public LinkVisitor {
 public:
  MovedOn(const ObjectSearch& search, const trace::Position& at) : search_(search), at_(at) {}
  bool any = false;
  bool link(const Link&, void* object) override {
    if (const c10::TensorImpl* tensor = search_.tensor_at(object)) {
      note(*tensor);
    } else if (is_torch_module(object)) {
      visit_weights(search_, object, [this](const c10::TensorImpl& weight) { return note(weight); });
    }
    return !any;
  }

 private:
  bool note(const c10::TensorImpl& tensor) {
    const c10::StorageImpl* storage = storage_of(&tensor);
    if (storage == nullptr) return true;
    const trace::LineageNode node = runtime.recorder->lineage(origin_table().find(storage));
    const trace::Position at = runtime.recorder->site(node.site).user;
    any = node.how == trace::How::moved && at.file == at_.file && at.line == at_.line;
    return !any;
  }

  const ObjectSearch& search_;
  const trace::Position at_;
};

// The last line of a method that moves other attributes of its object, `self.net.to(device)`, and did; the method does
// not speak of this attribute at all.
std::optional<trace::Position> forgotten_by(const ObjectSearch& search, const void* code, const void* holder,
                                            const std::string& attribute) {
  if (mentions_text(code, attribute)) return std::nullopt;
  const std::string self = text_of(code_local_name(code, 0));
  FileLines files;
  std::optional<trace::Position> found;
  int count = 0;
  const ByteCode byte_code(code);
  for (const Instruction& one : byte_code.instructions()) {
    if (one.operation != Operation::load_attribute) continue;
    const trace::Position at = position_of(code, one.offset);
    const std::string statement = statement_at(files.of(at.file), at.line);
    const auto begin = statement.find(self + ".");
    if (begin == statement.npos || (found && found->line == at.line)) continue;
    if (!trace::calls_method(std::string_view(statement).substr(begin), kOwnMovers)) continue;
    MovedOn moved(search, at);
    visit_links(const_cast<void*>(holder), moved);
    if (!moved.any) continue;
    found = at;
    ++count;
  }
  return is_own_mover(code) || count >= kSeveral ? found : std::nullopt;
}

// What a method makes, it may well make where it belongs.
bool is_constructor(const void* code) {
  return is_name(field<const void*>(code, code_members.name), "__init__");
}

bool find_in_methods(const Inquiry& inquiry, std::size_t operand, const Part& part) {
  const std::string attribute = text_of(part.name);
  if (attribute.empty()) return false;
  for (const void* function : functions_of_type(type_of(part.holder))) {
    const void* code = code_of_function(function);
    if (code_arguments(code) < 1 || is_constructor(code)) continue;
    std::optional<trace::Position> position;
    if (is_own_mover(code)) position = handed_on(code, part.holder, attribute);
    if (!position) position = forgotten_by(inquiry.search, code, part.holder, attribute);
    if (!position) continue;
    inquiry.found.add(trace::EvidenceKind::left_by_own_move, operand, *position,
                      std::string(short_type_name(part.holder)) + "." + attribute);
    return true;
  }
  return false;
}

}  // namespace

void find_own_move(const Inquiry& inquiry, std::size_t operand) {
  const std::vector<Part> parts = parts_around(inquiry, operand);
  std::ranges::any_of(parts, [&](const Part& part) { return find_in_methods(inquiry, operand, part); });
}

}  // namespace devsan::hooks
