// The line that made the object which keeps an operand, where that is no code of the program: it gave the operand to a
// module of torch's, or to functools.partial. And whether such a module moves what is no parameter or buffer of it.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// Whether a line calls `callee` and gives something by the name of `argument`.
bool gives_by_name(std::string_view line, std::string_view callee, std::string_view argument) {
  const std::size_t begin = call_in(line, callee);
  const std::size_t name = begin != line.npos ? name_in(line, argument, begin) : line.npos;
  return name != line.npos && trimmed(line.substr(name + argument.size())).starts_with('=');
}

// The only line of the program that calls a module's type and gives it this weight by name.
std::optional<trace::Position> given_as_weight_at(const Inquiry& inquiry, const Holding& owner) {
  if (owner.link.name == nullptr) return std::nullopt;
  const std::string_view type = short_type_name(owner.holder);
  const std::string attribute = link_name(owner.link);
  return only_load(inquiry, type, [&](std::string_view line) { return gives_by_name(line, type, attribute); });
}

// `norm.register_buffer("center", torch.zeros(3))`, of a module of torch's that was there: a line of the program made
// the weight, and no module with it.
bool made_without_module(const trace::Site& made, const void* module) {
  if (!same_function(made.user, made.innermost) || made.user.line != made.innermost.line) return false;
  SourceFiles files;
  const std::string statement = statement_at(SourceLines(files.whole(made.user.file)), made.user.line);
  return name_in(statement, short_type_name(module), 0) == statement.npos;
}

// Where a class without a constructor of the program's was called: it has made the weight itself, or was given it. None
// where neither is so.
std::optional<trace::Position> call_of_torch_type(const Inquiry& inquiry, std::size_t operand, const void* module,
                                                  const trace::LineageNode& made) {
  const Holding* owner = inquiry.owner_of(operand);
  const bool own = owner != nullptr && owner->holder == module;
  if (const auto given = own ? given_as_weight_at(inquiry, *owner) : std::nullopt) return given;
  const trace::Site site = runtime.recorder->site(made.site);
  return own && made_without_module(site, module) ? std::nullopt : std::optional(site.user);
}

}  // namespace

std::vector<trace::Position> constructors_of(const void* object) {
  std::vector<trace::Position> found;
  for (const void* function : functions_of_type(type_of(object))) {
    const void* code = code_of_function(function);
    const bool torch = (code_table.classify(code) & kTorchCode) != 0;
    if (torch || !is_name(field<const void*>(code, code_members.name), "__init__")) continue;
    found.push_back(position_of(code, 0));
  }
  return found;
}

std::optional<trace::Position> constructing_call(const trace::LineageNode& made, const void* object) {
  const std::vector<trace::Position> constructors = constructors_of(object);
  const auto constructs = [&](const trace::Position& at) {
    return std::ranges::any_of(constructors, [&](const trace::Position& one) { return same_function(one, at); });
  };
  const std::vector<trace::Position> calls = call_frames(runtime.recorder->site(made.site).user, made.calls);
  const auto entered = outermost_within(calls, constructs);
  return entered ? std::optional(entered->call) : std::nullopt;
}

void find_given_to_module(const Inquiry& inquiry, std::size_t operand) {
  const Holding* owner = inquiry.owner_of(operand);
  const auto at = owner != nullptr ? given_as_weight_at(inquiry, *owner) : std::nullopt;
  if (!at) return;
  inquiry.found.add(trace::EvidenceKind::weight_given_at, operand, *at,
                    std::string(short_type_name(owner->holder)) + "." + link_name(owner->link));
}

std::optional<trace::Position> partial_made_at(const Inquiry& inquiry, const Link& keyword) {
  const std::string name = link_name(keyword);
  if (name.empty()) return std::nullopt;
  return only_load(inquiry, "partial", [&](std::string_view line) { return gives_by_name(line, "partial", name); });
}

void find_module_made(const Inquiry& inquiry, std::size_t operand, const void* module) {
  trace::LineageNode made{};
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& node) {
    made = node;
    return true;
  });
  if (made.how != trace::How::created) return;
  // A container of torch's may be made anywhere around what a constructor of the program's has made.
  const auto by_program = [](const Holding* one) { return !constructors_of(one->holder).empty(); };
  const bool of_torch = constructors_of(module).empty();
  if (of_torch && std::ranges::any_of(inquiry.owners_of(operand), by_program)) return;
  const auto call = of_torch ? call_of_torch_type(inquiry, operand, module, made) : constructing_call(made, module);
  if (call) inquiry.found.add(trace::EvidenceKind::module_made_at, operand, *call, type_name(module));
}

void find_own_apply(const Inquiry& inquiry, std::size_t operand, const void* module) {
  const void* code = method_named(type_of(module), "_apply");
  if (code == nullptr) return;
  trace::Position at = position_of(code, 0);
  at.line = at.end_line = code_first_line(code);  // the first instruction has no line where there are free variables
  at.column = at.end_column = -1;
  inquiry.found.add(trace::EvidenceKind::own_apply_at, operand, at, type_name(module));
}

}  // namespace devsan::hooks
