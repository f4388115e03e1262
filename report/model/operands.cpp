#include "report/model/operands.h"

#include <algorithm>
#include <tuple>

#include "report/model/frames.h"
#include "trace/odd_operand.h"

namespace devsan::report {

std::vector<LineageStep> lineage_of(const trace::TraceFile& trace, trace::LineageId id) {
  std::vector<LineageStep> steps;
  for (const trace::LineageNode& node : trace.lineage_chain(id)) {
    LineageStep& step = steps.emplace_back();
    if (auto frame = user_frame_of(trace, node.site)) step.at = std::move(*frame);
    if (auto frame = innermost_frame_of(trace, node.site)) step.innermost = std::move(*frame);
    step.op = trace.operator_name(node.op);
    step.how = node.how;
    step.device = trace.device_name(node.device);
    step.calls = call_frames_of(trace, trace::LineageId{node.calls});
  }
  return steps;
}

namespace {

Operand operand_of(const trace::TraceFile& trace, const trace::OperandRecord& record) {
  Operand operand;
  operand.arg = trace.string(record.argument);
  operand.name = trace.string(record.name);
  operand.device = trace.device_name(record.device);
  operand.is = record.name_kind;
  operand.generator = (record.flags & trace::kGenerator) != 0;
  operand.device_argument = (record.flags & trace::kDeviceArgument) != 0;
  operand.number = (record.flags & trace::kWrappedNumber) != 0;
  if (!operand.generator && !operand.device_argument && (record.flags & trace::kUnseen) == 0) {
    const auto shown = std::min<std::size_t>(record.dims, trace::kMaxShownDims);
    operand.shape.emplace(record.sizes.begin(), record.sizes.begin() + static_cast<std::ptrdiff_t>(shown));
    operand.hidden_dims = record.dims - shown;
    operand.dtype = trace.string(record.dtype);
  }
  operand.lineage = lineage_of(trace, record.lineage);
  return operand;
}

}  // namespace

std::vector<Operand> operands_of(const trace::TraceFile& trace, const trace::Meeting& meeting) {
  const trace::OddOperands verdict(
      trace.operator_name(meeting.fixed.op), trace.string(meeting.fixed.message), meeting.operands,
      [&](trace::StringId id) { return trace.string(id); },
      [&](trace::DeviceSlot slot) { return trace.device_name(slot); });
  std::vector<Operand> operands;
  operands.reserve(meeting.operands.size());
  for (const trace::OperandRecord& record : meeting.operands) {
    operands.push_back(operand_of(trace, record));
    operands.back().odd = verdict.odd(record);
  }
  return operands;
}

std::vector<Operand> operands_of(const trace::TraceFile& trace, const trace::Traffic& traffic) {
  std::vector<Operand> operands;
  for (const trace::OperandRecord& record : traffic.operands) operands.push_back(operand_of(trace, record));
  return operands;
}

const std::string& spoken_name(const Operand& operand) {
  return operand.name.empty() ? operand.arg : operand.name;
}

const Operand* first_odd(const std::vector<Operand>& operands) {
  const auto found = std::ranges::find_if(operands, [](const Operand& operand) { return operand.odd; });
  return found == operands.end() ? nullptr : &*found;
}

const Operand* counterpart_of(const Operand& odd, const std::vector<Operand>& operands) {
  const auto fits = [&](const Operand& operand) {
    return !operand.odd && !operand.number && !operand.device.empty() && operand.device != odd.device;
  };
  // A tensor rather than a generator, and one with a name that can be written down, if there is one.
  for (const bool wants_name : {true, false}) {
    for (const Operand& operand : operands) {
      if (fits(operand) && operand.shape && (!wants_name || !operand.name.empty())) return &operand;
    }
  }
  const auto found = std::ranges::find_if(operands, fits);
  return found == operands.end() ? nullptr : &*found;
}

namespace {

// Python of torch's that calls what has no lines: an extension; or the `forward` of a module, where TorchScript is that
// one: that of Python would have a frame of its own.
bool calls_what_has_no_lines(const Frame& called) {
  return called.file.ends_with("torch/_ops.py") ||
         (called.file.ends_with("/torch/nn/modules/module.py") && called.function.ends_with("_call_impl"));
}

}  // namespace

bool is_made_inside_call(const Operand& operand, const Finding& finding) {
  if (!finding.where || finding.stack.empty() || operand.lineage.empty()) return false;
  const Frame& called = finding.stack.front();
  if (called.torch && !calls_what_has_no_lines(called)) return false;  // Python of torch's, which has lines
  const Frame& where = *finding.where;
  const LineageStep& made = operand.lineage.front();
  const auto place = [](const Frame& frame) {
    return std::tie(frame.file, frame.function, frame.line, frame.column, frame.end_line, frame.end_column);
  };
  return where.column >= 0 && made.op != finding.op && place(made.at) == place(where);
}

std::vector<std::string> devices_of(const std::vector<Operand>& operands) {
  std::vector<std::string> devices;
  for (const Operand& operand : operands) {
    if (operand.number || operand.device.empty()) continue;
    if (std::ranges::find(devices, operand.device) == devices.end()) devices.push_back(operand.device);
  }
  return devices;
}

std::string_view kind_of_device(std::string_view device) {
  return device.substr(0, device.find(':'));
}

}  // namespace devsan::report
