#include "report/model/program_lines.h"

#include <algorithm>
#include <tuple>

namespace devsan::report {
namespace {

bool is_of_library(const Frame& frame) {
  return frame.library || frame.torch;
}

bool is_running(const Frame& call, const Finding& finding) {
  const auto place = [](const Frame& frame) {
    return std::tie(frame.file, frame.function, frame.line, frame.column, frame.end_line, frame.end_column);
  };
  return std::ranges::any_of(finding.stack, [&](const Frame& frame) { return place(frame) == place(call); });
}

void tell_from_program(LineageStep& step, const Finding& finding) {
  if (!step.at.library || step.at.torch) return;
  const auto call = std::ranges::find_if_not(step.calls, is_of_library);
  if (call == step.calls.end() || is_running(*call, finding)) return;
  step.within.push_back(std::move(step.at));
  step.within.insert(step.within.end(), std::move_iterator(step.calls.begin()), std::move_iterator(call));
  step.at = std::move(*call);
  step.calls.erase(step.calls.begin(), call + 1);
}

}  // namespace

void tell_from_program(Finding& finding) {
  for (Operand& operand : finding.operands) {
    for (LineageStep& step : operand.lineage) tell_from_program(step, finding);
  }
}

}  // namespace devsan::report
