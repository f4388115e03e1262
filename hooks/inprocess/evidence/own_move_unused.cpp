// An object that is no module can move itself, as `solver.to(device)` would, and was not told to: its method moves the
// attribute that an operand is, or was taken from. Read from the source of the method.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/own_parts.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

// The step that made an operand, or its weight, first; one that was moved has none.
std::optional<trace::LineageNode> made_by(const Inquiry& inquiry, std::size_t operand) {
  trace::LineageNode made{};
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& node) {
    made = node;
    return node.how != trace::How::moved;
  });
  return made.how == trace::How::created ? std::optional(made) : std::nullopt;
}

// Whether a method assigns the attribute a value that it moves: `self.table = self.table.to(device)`.
bool moves(const void* code, const std::string& attribute) {
  if (!is_own_mover(code)) return false;
  const trace::Position at = position_of(code, 0);
  const std::string target = text_of(code_local_name(code, 0)) + "." + attribute;
  FileLines files;
  const SourceLines& lines = files.of(at.file);
  const int definition = code_first_line(code);
  const int end = end_of_block(lines, definition + 1, definition);
  for (int line = definition + 1; line <= end; ++line) {
    const auto value = assigned_to(statement_at(lines, line), target);
    if (value && trace::calls_method(*value, kOwnMovers)) return true;
  }
  return false;
}

// "lower" where the step stands in `lower = (torch.tensor([0.5]), …)` of the body of a class.
std::string class_attribute(const trace::LineageNode& made) {
  const trace::Position at = runtime.recorder->site(made.site).user;
  FileLines files;
  const SourceLines& lines = files.of(at.file);
  const int type = enclosing_line(lines, at.line, "class ");
  int begin = type + 1;
  while (begin < at.line && !goes_on_to(lines, begin, at.line)) ++begin;
  return type != 0 ? leading_name(trimmed(lines[begin])) : std::string();
}

// Of what the body of the class of `self` made, in the function that runs.
std::optional<Part> part_of_class(const Inquiry& inquiry, const trace::LineageNode& made, std::string& attribute) {
  const void* frame = program_frame(inquiry.innermost);
  const void* self = frame != nullptr ? variable_named(frame, "self") : nullptr;
  const auto calls = call_frames(runtime.recorder->site(made.site).user, made.calls);
  if (self == nullptr || runtime.recorder->string(calls.front().function) != short_type_name(self)) return std::nullopt;
  attribute = class_attribute(made);
  return attribute.empty() ? std::nullopt : std::optional(Part{self, nullptr});
}

// `average = Average.load(file)`: the call of a class method that made the operand on its way, for an object of the
// class.
std::optional<trace::Position> call_of_class_method(const trace::LineageNode& made, const void* object) {
  const std::string prefix = std::string(short_type_name(object)) + ".";
  const auto calls = call_frames(runtime.recorder->site(made.site).user, made.calls);
  const auto of_class = [&](const trace::Position& at) {
    return runtime.recorder->string(at.function).starts_with(prefix);
  };
  const auto entered = outermost_within(calls, of_class);
  if (!entered) return std::nullopt;
  FileLines files;
  const SourceLines& lines = files.of(entered->within.file);
  const int definition = enclosing_line(lines, entered->within.line, "def ");
  const bool class_method = definition != 0 && parameter_of(statement_at(lines, definition), "cls");
  return class_method ? std::optional(entered->call) : std::nullopt;
}

// `for kept in average.shadow:`: the objects that are no modules with a list or dictionary that has the operand.
std::vector<Part> parts_by_list(const Inquiry& inquiry, std::size_t operand) {
  std::vector<Part> parts;
  for (const auto& [entry, list] : lists_with(inquiry, inquiry.object_of(operand))) {
    if (!is_torch_module(list.holder)) parts.push_back({list.holder, list.link.name});
  }
  return parts;
}

// The call that made an object: the one that led through its constructor, or through a method of its class, to the
// making of the operand; or the only one of its type.
std::optional<trace::Position> construction(const Inquiry& inquiry, const trace::LineageNode& made,
                                            const void* object) {
  if (const auto call = constructing_call(made, object)) return call;
  if (const auto call = call_of_class_method(made, object)) return call;
  const std::string_view type = short_type_name(object);
  return only_load(inquiry, type, [type](std::string_view line) { return call_in(line, type) != line.npos; });
}

bool find_unused(const Inquiry& inquiry, std::size_t operand, const trace::LineageNode& made, const void* holder,
                 const std::string& attribute) {
  if (attribute.empty() || is_torch_module(holder)) return false;
  for (const void* function : functions_of_type(type_of(holder))) {
    const void* code = code_of_function(function);
    if (!moves(code, attribute)) continue;
    const auto at = construction(inquiry, made, holder);
    if (!at) return false;
    const std::string method = text_of(field<const void*>(code, code_members.name));
    inquiry.found.add(trace::EvidenceKind::own_move_unused_at, operand, *at,
                      std::string(short_type_name(holder)) + "." + method);
    return true;
  }
  return false;
}

}  // namespace

void find_own_move_unused(const Inquiry& inquiry, std::size_t operand) {
  const auto made = made_by(inquiry, operand);
  if (!made) return;
  std::vector<Part> parts = parts_around(inquiry, operand);
  if (parts.empty()) parts = parts_by_list(inquiry, operand);
  for (const Part& part : parts) {
    if (find_unused(inquiry, operand, *made, part.holder, text_of(part.name))) return;
  }
  std::string attribute;
  const auto part = part_of_class(inquiry, *made, attribute);
  if (part) find_unused(inquiry, operand, *made, part->holder, attribute);
}

}  // namespace devsan::hooks
