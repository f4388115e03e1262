#include "report/causes/group_backend.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "report/causes/causes.h"
#include "report/model/frames.h"
#include "report/model/operands.h"
#include "trace/odd_operand.h"

namespace devsan::report {
namespace {

// The files of torch through which every call of a collective comes.
bool is_way_to_collectives(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kWays = {"distributed_c10d.py", "c10d_logger.py",
                                                     "_functional_collectives.py", "_ops.py"};
  return frame.torch && std::ranges::find(kWays, base_name(frame.file)) != kWays.end();
}

// Who called it.
const Frame* caller_of(const Finding& finding) {
  const auto caller = std::ranges::find_if_not(finding.stack, is_way_to_collectives);
  return caller == finding.stack.end() ? nullptr : &*caller;
}

// "cpu" of "… device type cpu"
std::string device_type_in(const std::string& message) {
  const std::size_t at = message.find(trace::kGroupRefused) + trace::kGroupRefused.size();
  return message.substr(at, message.find_first_not_of("abcdefghijklmnopqrstuvwxyz", at) - at);
}

RootCause cause_at_group(const Finding& finding, const Frame& caller, slice::Codebase& codebase) {
  const std::string type = device_type_in(finding.message);
  RootCause cause;
  const slice::Code code(codebase, finding);
  const slice::Nodes groups = code.calls("init_process_group");
  if (!groups.empty()) {
    const program::Node call = groups.front();
    cause.file = call.file().path();
    cause.line = call.line();
    cause.source = call.file().line_text(cause.line);
    cause.why = "This line makes a process group";
  } else {
    cause.file = finding.where->file;
    cause.line = finding.where->line;
    cause.why = "The process group that this line uses was made";
  }
  cause.why += " without a backend for tensors on " + type + ".";
  if (caller.torch || caller.library) {
    cause.why += " `" + caller.function + "` at " + short_place(caller) + ", in installed code, hands it one.";
  }
  if (const Operand* const odd = first_odd(finding.operands)) cause.operand = spoken_name(*odd);
  cause.confidence = Confidence::likely;
  const std::string backend = type == "cpu" ? "gloo" : "nccl";
  cause.fix = Fix{cause.file, cause.line,
                  "Give the process group a backend for " + type + ", too (" + backend +
                      "): `init_process_group(\"cpu:gloo,cuda:nccl\")`"};
  return cause;
}

}  // namespace

void add_group_backend(Finding& finding, slice::Codebase& codebase) {
  if (finding.message.find(trace::kGroupRefused) == std::string::npos || !finding.where) return;
  const Frame* const caller = caller_of(finding);
  if (caller == nullptr) return;
  RootCause group = cause_at_group(finding, *caller, codebase);
  if (finding.root_cause && !caller->torch && !caller->library) {
    group.confidence = Confidence::possible;
    if (finding.alternatives.size() == kMostAlternatives) finding.alternatives.pop_back();
    finding.alternatives.push_back(std::move(group));
    return;
  }
  if (finding.root_cause) {
    RootCause former = std::move(*finding.root_cause);
    former.confidence = Confidence::possible;
    former.fix = std::move(finding.fix);
    finding.alternatives.insert(finding.alternatives.begin(), std::move(former));
    if (finding.alternatives.size() > kMostAlternatives) finding.alternatives.pop_back();
  }
  finding.fix = std::move(group.fix);
  group.fix.reset();
  finding.root_cause = std::move(group);
}

}  // namespace devsan::report
