#include "program_findings.h"

namespace devsan::report::program_findings {

Frame line(int number, const char* function, const std::string& source, const std::string& call) {
  Frame frame;
  frame.file = kFile;
  frame.line = frame.end_line = number;
  frame.function = function;
  frame.source = source;
  const std::size_t begin = call.empty() ? std::min(source.find_first_not_of(' '), source.size()) : source.find(call);
  frame.column = static_cast<int>(begin);
  frame.end_column = static_cast<int>(call.empty() ? source.size() : begin + call.size());
  return frame;
}

Frame library_line(int number, const char* function, const std::string& source) {
  Frame frame = line(number, function, source);
  frame.file = kLibrary;
  frame.library = true;
  return frame;
}

LineageStep created(const Frame& at, const char* device) {
  return {at, "aten::zeros", trace::How::created, device, at};
}

LineageStep derived(const Frame& at, const char* device) {
  return {at, "aten::clone", trace::How::derived, device, at};
}

LineageStep moved(const Frame& at, const char* device) {
  return {at, "aten::_to_copy", trace::How::moved, device, at};
}

LineageStep called_by(LineageStep step, const std::vector<Frame>& calls) {
  step.calls = calls;
  return step;
}

LineageStep with_op(LineageStep step, const char* op) {
  step.op = op;
  return step;
}

LineageStep by_module(LineageStep step) {
  step.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
  return step;
}

Finding add(const char* odd_name, trace::NameKind is) {
  Finding finding;
  finding.raised = true;
  finding.op = "aten::add.Tensor";
  finding.where =
      line(30, "Net.forward", std::string("        return x + ") + odd_name, std::string("x + ") + odd_name);
  finding.stack = {*finding.where};
  Operand x;
  x.arg = "self";
  x.name = "x";
  x.device = "cuda:0";
  x.shape = {4};
  x.is = trace::NameKind::local;
  Operand other = x;
  other.arg = "other";
  other.name = odd_name;
  other.device = "cpu";
  other.odd = true;
  other.is = is;
  finding.operands = {x, other};
  return finding;
}

Operand& wanted(Finding& finding) {
  return finding.operands[0];
}

Operand& odd(Finding& finding) {
  return finding.operands[1];
}

}  // namespace devsan::report::program_findings
