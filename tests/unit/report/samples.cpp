#include "samples.h"

#include "report/model/merge.h"

namespace devsan::report::samples {
namespace {

const char* const kZero = "/srv/train/.venv/lib/python3.11/site-packages/framework/runtime/zero/partitioned.py";
const char* const kEngine = "/srv/train/.venv/lib/python3.11/site-packages/framework/runtime/engine.py";

Frame frame(const char* file, int line, const char* function, const char* source = "", int column = -1,
            int end_column = -1) {
  Frame result;
  result.file = file;
  result.line = result.end_line = line;
  result.function = function;
  result.source = source;
  result.column = column;
  result.end_column = end_column;
  result.library = std::string_view(file).find("site-packages") != std::string_view::npos;
  return result;
}

LineageStep step(trace::How how, const char* op, int line, const char* function, const char* source) {
  const Frame at = frame(kZero, line, function, source);
  return {at, op, how, "cuda:0", at};
}

std::vector<LineageStep> norm_lineage() {
  using enum trace::How;
  const char* const unscale = "Optimizer.unscale_and_clip";
  const char* const norm = "Optimizer.norm_of_group";
  return {
      step(derived, "aten::mul.Tensor", 2117, unscale, "        self.flat_groups[sub_group_id].grad.mul_(1. / scale)"),
      step(derived, "aten::reciprocal", 2117, unscale, "        self.flat_groups[sub_group_id].grad.mul_(1. / scale)"),
      step(derived, "aten::mul.Tensor", 2115, unscale, "                scale = clip * self.loss_scale"),
      step(derived, "aten::div.Tensor", 2113, unscale,
           "            clip = ((total_norm / self.loss_scale) + 1e-6) / self.clip_grad"),
      step(derived, "aten::add.Tensor", 2113, unscale,
           "            clip = ((total_norm / self.loss_scale) + 1e-6) / self.clip_grad"),
      step(derived, "aten::linalg_vector_norm", 2029, "Optimizer.step",
           "        scaled_global_grad_norm = torch.norm(torch.stack(norm_groups))"),
      step(derived, "aten::stack", 2029, "Optimizer.step",
           "        scaled_global_grad_norm = torch.norm(torch.stack(norm_groups))"),
      step(derived, "aten::add.Tensor", 1415, norm,
           "        total_norm = inf_or_nan * err + inf_or_nan.logical_not() * total_norm"),
      step(derived, "aten::logical_not", 1414, norm, "        inf_or_nan = norm_is_nan.logical_or(norm_is_inf)"),
      step(derived, "aten::isinf", 1410, norm, "        norm_is_inf = total_norm.isinf()"),
      step(derived, "aten::pow.Tensor_Scalar", 1408, norm, "        total_norm = total_norm_cuda[0]**(1. / norm_type)"),
      step(created, "aten::empty.memory_format", 1402, norm,
           "        total_norm_cuda = get_accelerator().FloatTensor([float(total_norm)])"),
  };
}

Operand operand(const char* arg, const char* name, const char* device, std::vector<std::int64_t> shape,
                trace::NameKind is) {
  Operand result;
  result.arg = arg;
  result.name = name;
  result.device = device;
  result.shape = std::move(shape);
  result.dtype = "float32";
  result.is = is;
  return result;
}

RootCause cause(const char* file, int line, Confidence confidence, const char* mechanism, const char* why) {
  RootCause result;
  result.file = file;
  result.line = line;
  result.why = why;
  result.mechanism = mechanism;
  result.confidence = confidence;
  return result;
}

Finding completed(Finding finding) {
  finding.id = identity_of(finding);
  return finding;
}

}  // namespace

Finding offloaded_gradient() {
  Finding finding;
  finding.kind = Kind::device_mismatch;
  finding.severity = Severity::error;
  finding.raised = true;
  finding.message = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!";
  finding.op = "aten::mul_.Tensor";
  finding.stack = {
      frame(kZero, 2117, "Optimizer.unscale_and_clip",
            "        self.flat_partitioned_groups_fp32[sub_group_id].grad.mul_(1. / combined_scale)", 8, 86),
      frame(kZero, 2046, "Optimizer.step"),
      frame(kEngine, 2056, "Engine._take_model_step"),
      frame(kEngine, 2162, "Engine.step"),
      frame("/srv/train/train.py", 41, "<module>", "    engine.step()", 4, 17),
  };
  finding.where = finding.stack.front();
  finding.operands = {operand("self", "self.flat_partitioned_groups_fp32[sub_group_id].grad", "cpu", {2632},
                              trace::NameKind::attribute),
                      operand("other", "1. / combined_scale", "cuda:0", {}, trace::NameKind::temporary)};
  finding.operands[1].odd = true;
  finding.operands[1].lineage = norm_lineage();
  finding.step = 17;
  finding.phase = trace::Phase::optimizer;
  finding.rank = 0;
  finding.ranks = {0};
  finding.pid = 4242;
  finding.thread = 4242;
  finding.thread_name = "MainThread";
  finding.root_cause =
      cause(kZero, 2029, Confidence::possible, "computed_elsewhere",
            "This line computes `1. / combined_scale`, or what it comes from. `1. / combined_scale` was "
            "on cuda:0; the operand `self` was on cpu.");
  finding.root_cause->operand = "1. / combined_scale";
  finding.fix = Fix{kZero, 2029, "Move the result of this line to cpu, or move what it is computed from."};
  finding.alternatives = {
      cause(kZero, 2117, Confidence::possible, "handed_on_unmoved", "This line uses `1. / combined_scale`."),
      cause(kZero, 1402, Confidence::possible, "made_without_device",
            "This line makes `1. / combined_scale`, or what it comes from, without naming a device.")};
  return completed(std::move(finding));
}

Finding plain_attribute() {
  Finding finding;
  finding.raised = true;
  finding.message = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!";
  finding.op = "aten::add.Tensor";
  finding.stack = {
      frame("/srv/train/model.py", 23, "Attention.forward", "        return (s + self.bias).softmax(-1)", 16, 29),
      frame("/srv/train/model.py", 25, "<module>")};
  finding.where = finding.stack.front();
  finding.operands = {operand("self", "s", "cuda:0", {2, 3, 3}, trace::NameKind::local),
                      operand("other", "self.bias", "cpu", {3, 3}, trace::NameKind::attribute)};
  finding.operands[1].odd = true;
  const Frame made = frame("/srv/train/model.py", 19, "Attention.__init__",
                           "        self.bias = torch.linspace(0, 1, 3).repeat(3, 1)");
  finding.operands[1].lineage = {{made, "aten::repeat", trace::How::derived, "cpu", made},
                                 {made, "aten::linspace", trace::How::created, "cpu", made}};
  finding.phase = trace::Phase::forward;
  finding.pid = 77;
  finding.thread_name = "MainThread";
  finding.root_cause = cause("/srv/train/model.py", 19, Confidence::likely, "made_without_device",
                             "This line makes `self.bias`, or what it comes from, without naming a device. `self.bias` "
                             "was on cpu; `s` was on cuda:0.");
  finding.root_cause->operand = "self.bias";
  finding.fix = Fix{"/srv/train/model.py", 19, "Pass `device='cuda:0'` in this line, or move what it makes to cuda:0."};
  return completed(std::move(finding));
}

Finding allowed_scalar() {
  Finding finding;
  finding.kind = Kind::mixed_operands;
  finding.severity = Severity::note;
  finding.op = "aten::mul.Tensor";
  finding.stack = {frame("/srv/train/model.py", 30, "scale", "    return x * half", 11, 19)};
  finding.where = finding.stack.front();
  finding.operands = {operand("self", "x", "cuda:0", {4}, trace::NameKind::local),
                      operand("other", "half", "cpu", {}, trace::NameKind::local)};
  finding.operands[1].odd = true;
  finding.pid = 77;
  finding.count = 12;
  return completed(std::move(finding));
}

Report report_of(std::vector<Finding> findings) {
  Report report;
  report.run.command = "python train.py";
  report.run.hosts = {"node-1"};
  report.run.steps = 18;
  report.run.optimizer_steps = 0;
  Process process;
  process.file = "devsan-out/20261121-1/rank0.4242.devsan";
  process.pid = 4242;
  process.rank = 0;
  process.close = trace::CloseMark::exited;
  process.steps = 18;
  process.operators = 1000;
  report.run.processes = {process};
  report.findings = std::move(findings);
  return report;
}

}  // namespace devsan::report::samples
