#include "report/findings/build_traffic.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "report/causes/traffic_causes.h"
#include "report/model/call_text.h"
#include "report/model/find_in_call.h"
#include "report/model/frames.h"
#include "report/model/merge.h"
#include "report/model/operands.h"
#include "report/model/statement_lines.h"

namespace devsan::report {
namespace {

std::optional<Kind> kind_of(const trace::TrafficPayload& traffic) {
  switch (traffic.kind) {
    case trace::TrafficKind::none:
      return std::nullopt;
    case trace::TrafficKind::wait:
      return Kind::implicit_sync;
    case trace::TrafficKind::copy:
      // Once is how data gets to a device; again and again at one line is what somebody may not have meant.
      return traffic.repeats > 0 ? std::optional(Kind::implicit_transfer) : std::nullopt;
    case trace::TrafficKind::unpinned_copy:
      return Kind::unpinned_async_copy;
    case trace::TrafficKind::race:
      return Kind::async_race;
  }
  return std::nullopt;
}

// The program asks for the number itself, in so many words.
bool asks_for_number(const Frame& frame) {
  const std::string_view text = call_text_of(frame);
  return text.ends_with(".item()") || text.ends_with(".tolist()");
}

// The innermost frame but those of torch's Python text for one operator or container, which hands on what it is given:
// `self.experts[index]` of an nn.ModuleList, `x.split(sizes)`. None where no frame is known.
const Frame* asking_frame(const Finding& finding) {
  static constexpr std::string_view kHandOn[] = {"/torch/nn/modules/container.py", "/torch/nn/functional.py",
                                                 "/torch/functional.py", "/torch/_tensor.py"};
  const auto asking = std::ranges::find_if(finding.stack, [](const Frame& frame) {
    return !frame.torch ||
           std::ranges::none_of(kHandOn, [&](std::string_view file) { return frame.file.ends_with(file); });
  });
  return asking != finding.stack.end() ? &*asking : nullptr;
}

// `moves[action]`, `[pad] * count`, `range(count)`: Python takes the tensor for an index or a length, which nobody has
// asked it for. Of what a line calls otherwise the program knows that it wants a number.
bool takes_for_index(const Finding& finding) {
  const Frame* asking = asking_frame(finding);
  if (finding.op != "aten::item" || asking == nullptr || asking->torch) return false;
  const std::string_view text = call_text_of(*asking);
  if (text.starts_with("range(")) return true;
  return !text.ends_with(')') && (text.ends_with(']') || text.find('*') != std::string_view::npos);
}

// Whether the array that this call returns is read at once: "host.numpy().sum()", "host.numpy() * 2". One that is kept,
// passed on, or only looked at in another shape may be read later.
bool is_read_at_once(const Frame& frame) {
  static constexpr std::string_view kViews[] = {
      "T",    "view",   "reshape", "transpose", "squeeze", "swapaxes", "shape", "dtype", "ndim",
      "size", "nbytes", "strides", "itemsize",  "ctypes",  "data",     "flags", "base",  "newbyteorder"};
  if (call_text_of(frame).empty()) return false;
  std::string_view rest = behind_call(frame);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (rest.empty()) return false;
  if (rest.front() != '.') return std::string_view("+-*/%@<>").find(rest.front()) != std::string_view::npos;
  rest.remove_prefix(1);
  const auto end =
      std::ranges::find_if(rest, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; });
  const std::string_view attribute = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  return std::ranges::find(kViews, attribute) == std::end(kViews);
}

// What is given to NumPy may be read after all waits. It is a race where it is read at once, or where nothing ever
// waited.
bool is_settled(const Finding& finding, const trace::TrafficPayload& traffic) {
  if (traffic.race != trace::RaceKind::numpy_read_target) return false;
  return traffic.settled > traffic.repeats && !(finding.where && is_read_at_once(*finding.where));
}

// A conversion is called on what it converts: "batch.to(device)", "batch['x'].cuda()".
void name_receiver(Finding& finding) {
  if (finding.operands.size() != 1 || !finding.where || finding.stack.front().torch) return;
  const auto call = split_call(call_text_of(*finding.where));
  if (!call || call->subscript || call->receiver.empty() || call->receiver == "torch") return;
  Operand& operand = finding.operands.front();
  operand.text = call->receiver;
  if (operand.name.empty()) operand.name = call->receiver;
}

// A number that an operator takes is an argument of that operator's call, and no operand of it.
void name_operands(Finding& finding, const trace::TrafficPayload& traffic) {
  if (traffic.kind == trace::TrafficKind::wait) return;
  if (finding.operands.size() == 1 && traffic.kind != trace::TrafficKind::race) return name_receiver(finding);
  find_in_call(finding);
}

// Torch's own code stands innermost, and only hands on what the program has given it.
bool is_asked_by_program(const Finding& finding) {
  const Frame* asking = asking_frame(finding);
  return asking != nullptr && asking != &finding.stack.front() && !asking->torch && !asking->library;
}

Severity severity_of(Kind kind, const trace::TrafficPayload& traffic, const Finding& finding) {
  const bool foreign = (traffic.flags & trace::kForeignPlace) != 0;
  switch (kind) {
    case Kind::async_race:
      return foreign && (traffic.flags & trace::kForeignCause) != 0 ? Severity::note : Severity::warning;
    case Kind::unpinned_async_copy:
      return foreign ? Severity::note : Severity::warning;
    case Kind::implicit_sync:
      return (foreign && !is_asked_by_program(finding)) || finding.traffic->taker.empty() || !finding.where ||
                     asks_for_number(*finding.where)
                 ? Severity::note
                 : Severity::warning;
    default:
      return Severity::note;
  }
}

bool made_by_loader(const trace::TraceFile& trace, const trace::Traffic& traffic) {
  return std::ranges::any_of(traffic.operands, [&](const trace::OperandRecord& operand) {
    const auto node = trace.lineage(operand.lineage);
    const auto site = node ? trace.site(node->site) : std::nullopt;
    return site && trace.string(site->innermost.file).find("/torch/utils/data/") != std::string_view::npos;
  });
}

Traffic facts_of(const trace::TraceFile& trace, const trace::Traffic& record) {
  const trace::TrafficPayload& fixed = record.fixed;
  Traffic traffic;
  traffic.race = fixed.race;
  traffic.copy = user_frame_of(trace, fixed.cause);
  traffic.taker = trace.operator_name(fixed.taker);
  traffic.to_host = (fixed.flags & trace::kToHost) != 0;
  traffic.from_loader = made_by_loader(trace, record);
  traffic.bytes = fixed.bytes;
  const double times = 1.0 + fixed.repeats;
  const std::uint32_t last = std::max(trace.header().step, fixed.last_step);
  traffic.per_step = std::round(times / (1.0 + last - std::min(last, fixed.step)) * 100) / 100;
  traffic.last_step = std::max(fixed.step, fixed.last_step);
  traffic.each_step = fixed.steps > traffic.last_step - fixed.step;
  return traffic;
}

Finding finding_of(const trace::TraceFile& trace, const trace::Traffic& record, Kind kind) {
  const trace::TrafficPayload& fixed = record.fixed;
  Finding finding;
  finding.kind = kind;
  finding.op = trace.operator_name(fixed.op);
  finding.stack = frames_of(trace, record.frames);
  const auto outside = std::ranges::find_if(finding.stack, [](const Frame& frame) { return !frame.torch; });
  if (outside != finding.stack.end()) {
    finding.where = *outside;
  } else {
    finding.where = user_frame_of(trace, fixed.site);
  }
  if (finding.stack.empty() && finding.where) finding.stack.push_back(*finding.where);
  finding.operands = operands_of(trace, record);
  finding.traffic = facts_of(trace, record);
  if (finding.traffic->taker.empty() && takes_for_index(finding)) finding.traffic->taker = Traffic::kPythonIndex;
  name_operands(finding, fixed);
  finding.severity = severity_of(kind, fixed, finding);
  if ((fixed.flags & trace::kTrafficExpected) != 0) {
    finding.silence = Silence{Silence::By::expected, "", 0, "", ""};
  } else if ((fixed.flags & trace::kTrafficAllowed) != 0) {
    finding.silence = Silence{Silence::By::allowed, "", 0, "", ""};
  }
  finding.step = fixed.step;
  finding.phase = fixed.phase;
  set_process(finding, trace.header().pid, trace.rank());
  finding.thread = fixed.tid;
  finding.thread_name = trace.string(fixed.thread_name);
  finding.count = 1 + std::uint64_t{fixed.repeats};
  finding.time_ns = fixed.time_ns;
  return finding;
}

}  // namespace

std::vector<Finding> build_traffic(const trace::TraceFile& trace) {
  std::vector<Finding> findings;
  for (const trace::Traffic& record : trace.traffic()) {
    const std::optional<Kind> kind = kind_of(record.fixed);
    if (!kind) continue;
    Finding& finding = findings.emplace_back(finding_of(trace, record, *kind));
    if (is_settled(finding, record.fixed)) {
      findings.pop_back();
      continue;
    }
    finding.id = identity_of(finding);
    explain_traffic(finding);
  }
  return findings;
}

}  // namespace devsan::report
