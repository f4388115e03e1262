// A call that leaves a device argument at its default, in a function that knows a device: `mask = causal_mask(n)` where
// `causal_mask(n, device=None)` takes one, and the function around works on `self.device`.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxCalls = 6;
constexpr std::array<std::string_view, 2> kNames = {"device", "dev"};

// The function that a position lies in, by its text.
struct Definition {
  int line = 0;  // 0: none
  std::string text;
  bool bound = false;  // what calls it does not write the first argument
};

Definition definition_around(const SourceLines& lines, int line) {
  Definition found;
  found.line = enclosing_line(lines, line, "def ");
  if (found.line == 0) return found;
  found.text = statement_at(lines, found.line);
  found.bound = enclosing_line(lines, found.line, "class ") != 0 && is_bound(found.text);
  return found;
}

// The argument by which a function is told a device, where it has a default.
std::optional<Parameter> device_parameter(const Definition& definition) {
  for (const std::string_view name : kNames) {
    auto parameter = parameter_of(definition.text, name);
    if (parameter && !parameter->standard.empty()) return parameter;
  }
  return std::nullopt;
}

// How the function around a line says a device: its own argument, or `self.device` somewhere in it. Empty where it does
// not, or computes one.
std::string device_known(const SourceLines& lines, int line) {
  const Definition around = definition_around(lines, line);
  if (around.line == 0) return "";
  for (const std::string_view name : kNames) {
    if (parameter_of(around.text, name)) return std::string(name);
  }
  constexpr std::string_view kOwn = "self.device";
  const int end = end_of_function(lines, around.line + 1);
  for (int k = around.line + 1; k <= end; ++k) {
    const std::size_t at = lines[k].find(kOwn);
    const std::size_t behind = at + kOwn.size();
    const bool whole = at != std::string_view::npos && (behind == lines[k].size() || !trace::is_word(lines[k][behind]));
    if (whole && !is_blank(lines[k])) return std::string(kOwn);
  }
  return "";
}

// "windows.device", where the function that fails makes the call, and has `windows`, which its result meets there, by
// then; else empty.
std::string device_of_met(const SourceLines& lines, const trace::Position& call, const Met& met) {
  const Definition around = definition_around(lines, call.line);
  if (met.variable.empty() || around.line == 0 || !same_function(call, met.at)) return "";
  const bool known = parameter_of(around.text, met.variable).has_value() ||
                     !assignments_of(lines, met.variable, around.line + 1, call.line).empty();
  return known ? met.variable + ".device" : "";
}

}  // namespace

void find_call_without_device(const trace::Position& at, std::uint32_t calls, std::size_t index, EvidenceList& found,
                              const Met& met) {
  const std::vector<trace::Position> frames = call_frames(at, calls);
  SourceFiles files;
  SourceFiles caller_files;
  for (std::size_t k = 1; k < frames.size() && k <= kMaxCalls; ++k) {
    const SourceLines callee(files.whole(frames[k - 1].file));
    const Definition definition = definition_around(callee, frames[k - 1].line);
    const auto parameter = definition.line != 0 ? device_parameter(definition) : std::nullopt;
    if (!parameter || is_comprehension(frames[k - 1])) continue;
    const SourceLines caller(caller_files.whole(frames[k].file));
    const auto call = call_text(code_text(caller, frames[k]));
    if (!call || given_for(*parameter, *call, definition.bound).by != Given::By::standard) continue;
    std::string known = device_known(caller, frames[k].line);
    // Any other default is a device, or says how the function finds one.
    if (known.empty() && parameter->standard == "None") known = device_of_met(caller, frames[k], met);
    if (known.empty()) continue;
    return found.add(trace::EvidenceKind::device_not_given_at, index, frames[k], parameter->name + "=" + known);
  }
}

void find_device_not_given(const trace::OperandRecord& operand, std::size_t index, const Met& met,
                           EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines&) {
    find_call_without_device(made, node.calls, index, found, met);
    return node.how == trace::How::derived;
  });
}

}  // namespace devsan::hooks
