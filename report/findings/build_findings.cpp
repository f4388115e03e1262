#include "report/findings/build_findings.h"

#include <algorithm>

#include "report/findings/build_live_memory.h"
#include "report/model/find_in_call.h"
#include "report/model/frames.h"
#include "report/model/merge.h"
#include "report/model/operands.h"
#include "report/model/program_lines.h"
#include "report/wording/host_access_text.h"
#include "trace/odd_operand.h"

namespace devsan::report {
namespace {

// Torch's own frames say how PyTorch works inside; what a person can change begins outside of them. Code of libraries
// is a proper place: the bug may well be theirs.
std::optional<Frame> place_of(const trace::TraceFile& trace, const trace::Meeting& meeting,
                              const std::vector<Frame>& stack) {
  const auto user = std::ranges::find_if(stack, [](const Frame& frame) { return !frame.torch; });
  if (user != stack.end()) return *user;
  if (auto frame = user_frame_of(trace, meeting.fixed.site)) return frame;
  if (!stack.empty()) return stack.front();
  return std::nullopt;
}

Severity severity_of_handled(std::string_view message) {
  return trace::refused_by_numpy(message) ? Severity::note : Severity::warning;
}

Finding finding_of(const trace::TraceFile& trace, const trace::Meeting& meeting) {
  Finding finding;
  finding.kind = trace::kind_of_meeting(meeting.fixed.flags);
  finding.raised = (meeting.fixed.flags & trace::kRaised) != 0;
  finding.handled = finding.raised && (meeting.fixed.flags & trace::kHandled) != 0;
  finding.message = trace.string(meeting.fixed.message);
  finding.severity = finding.handled ? severity_of_handled(finding.message) : default_severity(finding.kind);
  finding.op = trace.operator_name(meeting.fixed.op);
  finding.stack = frames_of(trace, meeting.frames);
  if (!meeting.forward_frames.empty()) finding.forward = frames_of(trace, meeting.forward_frames);
  finding.where = place_of(trace, meeting, finding.stack);
  if (finding.stack.empty() && finding.where) finding.stack.push_back(*finding.where);
  for (const trace::NativeFrame& native : meeting.native_frames) {
    finding.native_stack.push_back(
        {std::string(trace.string(native.module)), readable_symbol(trace.string(native.symbol)), native.offset});
  }
  if (finding.kind == Kind::out_of_memory) {
    add_live_memory(trace, meeting, finding);
  } else {
    finding.operands = operands_of(trace, meeting);
    tell_from_program(finding);
    // Which operand of the call the memory is of is not known.
    if (finding.kind == Kind::host_dereference) {
      finding.host_access = host_access_of(trace, meeting);
      explain_host_access(finding);
    } else {
      find_in_call(finding);
    }
  }
  finding.step = meeting.fixed.step;
  finding.phase = meeting.fixed.phase;
  set_process(finding, trace.header().pid, trace.rank());
  finding.own_device = device_of_rank(trace);
  finding.thread = meeting.fixed.tid;
  finding.thread_name = trace.string(meeting.fixed.thread_name);
  finding.count = 1 + std::uint64_t{meeting.fixed.repeats};
  finding.time_ns = meeting.fixed.time_ns;
  if ((meeting.fixed.flags & trace::kExpected) != 0) {
    finding.silence = Silence{Silence::By::expected, "", 0, "", ""};
  } else if ((meeting.fixed.flags & trace::kAllowed) != 0) {
    finding.silence = Silence{Silence::By::allowed, "", 0, "", ""};
  }
  return finding;
}

}  // namespace

std::string device_of_rank(const trace::TraceFile& trace) {
  if (trace.world_size().value_or(1) < 2 || !trace.local_rank()) return {};
  return "cuda:" + std::to_string(*trace.local_rank());
}

std::vector<Finding> build_findings(const trace::TraceFile& trace) {
  std::vector<Finding> findings;
  findings.reserve(trace.meetings().size());
  for (const trace::Meeting& meeting : trace.meetings()) {
    Finding& finding = findings.emplace_back(finding_of(trace, meeting));
    finding.id = identity_of(finding);
  }
  return findings;
}

}  // namespace devsan::report
