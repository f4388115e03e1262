#include "report/model/find_in_call.h"

#include <catch2/catch.hpp>
#include <string>

namespace devsan::report {
namespace {

using Names = std::vector<std::string>;

Operand operand(std::string arg, std::string name = "") {
  Operand result;
  result.arg = std::move(arg);
  result.name = std::move(name);
  result.shape.emplace();
  return result;
}

Frame call(std::string_view source, std::string_view text) {
  Frame frame;
  frame.file = "/srv/app/model.py";
  frame.function = "forward";
  frame.line = frame.end_line = 3;
  frame.source = source;
  frame.column = static_cast<int>(source.find(text));
  frame.end_column = frame.column + static_cast<int>(text.size());
  return frame;
}

Names named(std::string_view text, std::vector<Operand> operands) {
  Finding finding;
  finding.where = call(text, text);
  finding.stack = {*finding.where};
  finding.operands = std::move(operands);
  find_in_call(finding);
  Names names;
  for (const Operand& one : finding.operands) names.push_back(one.name);
  return names;
}

TEST_CASE("Operands of an operator take the text on its sides") {
  CHECK(named("v[:, None] == self.ids[None, :]", {operand("self"), operand("other")}) ==
        Names{"v[:, None]", "self.ids[None, :]"});
  CHECK(named("x + f(y)", {operand("self", "x"), operand("other")}) == Names{"x", "f(y)"});
}

TEST_CASE("Operands of a call take the arguments that are not yet spoken for") {
  CHECK(named("logp.gather(-1, acts.unsqueeze(-1))", {operand("self", "logp"), operand("index")}) ==
        Names{"logp", "acts.unsqueeze(-1)"});
  CHECK(named("torch.where(m > 0, x, y / 2)", {operand("condition"), operand("self", "x"), operand("other")}) ==
        Names{"m > 0", "x", "y / 2"});
  CHECK(named("f(x).add_(y)", {operand("self"), operand("other", "y")}) == Names{"f(x)", "y"});
  CHECK(named("x.add(other=f(y))", {operand("self", "x"), operand("other")}) == Names{"x", "f(y)"});
  CHECK(named("table[f(y)]", {operand("self", "table"), operand("indices[0]")}) == Names{"table", "f(y)"});
}

TEST_CASE("Members of a list take the elements of its display") {
  CHECK(named("torch.cat([x, f(h)], dim=1)", {operand("tensors[0]", "x"), operand("tensors[1]")}) ==
        Names{"x", "f(h)"});
  CHECK(named("torch.cat([x, *rest])", {operand("tensors[0]", "x"), operand("tensors[1]"), operand("tensors[2]")}) ==
        Names{"x", "", ""});
}

TEST_CASE("An operand stands in the call however its name is spelled") {
  const auto texts = [](std::string_view text, std::vector<Operand> operands) {
    Finding finding;
    finding.where = call(text, text);
    finding.stack = {*finding.where};
    finding.operands = std::move(operands);
    find_in_call(finding);
    Names found;
    for (const Operand& one : finding.operands) found.push_back(one.text);
    return found;
  };
  CHECK(
      texts("self.groups[i].grad.mul_(1. / s)", {operand("self", "self.groups[0].grad"), operand("other", "1. / s")}) ==
      Names{"self.groups[i].grad", "1. / s"});
  CHECK(texts("torch.dist(a, rows[i])", {operand("self", "a"), operand("other", "rows[3]")}) == Names{"a", "rows[i]"});
  CHECK(texts("th.dist(f(a), g(b))", {operand("self"), operand("other")}) == Names{"f(a)", "g(b)"});
  CHECK(texts("f(x).gather(dim, g(i))", {operand("self"), operand("index")}) == Names{"f(x)", ""});
  CHECK(texts("x.gather(dim, i)", {operand("self", "x"), operand("index", "i")}) == Names{"x", "i"});
  CHECK(texts("y * x", {operand("self", "x"), operand("other", "y")}) == Names{"x", "y"});
}

TEST_CASE("Where it is not sure which argument is which, nobody is named") {
  CHECK(named("fused(f(x), g(y), h(z))", {operand("self"), operand("other")}) == Names{"", ""});
  CHECK(named("torch.add(*pair)", {operand("self"), operand("other")}) == Names{"", ""});
  CHECK(named("F.relu(input=f(x))", {operand("self")}) == Names{""});
}

TEST_CASE("A call that went through torch's own Python has other operands than arguments") {
  Finding finding;
  finding.where = call("net(f(x))", "net(f(x))");
  Frame torch_frame;
  torch_frame.torch = true;
  finding.stack = {torch_frame, *finding.where};
  finding.operands = {operand("input"), operand("weight", "fc.weight")};
  find_in_call(finding);
  CHECK(finding.operands[0].name.empty());
}

TEST_CASE("What was computed within the call is called by its own text, and is a temporary") {
  const std::string source = "    grad.mul_(1. / scale)";
  Finding finding;
  finding.where = call(source, "grad.mul_(1. / scale)");
  finding.operands = {operand("self", "grad"), operand("other")};
  finding.operands[1].lineage.resize(1);
  finding.operands[1].lineage[0].at = call(source, "1. / scale");
  find_in_call(finding);
  CHECK(finding.operands[1].name == "1. / scale");
  CHECK(finding.operands[1].is == trace::NameKind::temporary);
}

TEST_CASE("What the same call made before, or another line, gives no name") {
  const std::string source = "    total = grad.mul_(1. / scale)";
  Finding finding;
  finding.where = call(source, "grad.mul_(1. / scale)");
  finding.operands = {operand("self", "grad"), operand("other")};
  finding.operands[1].lineage.resize(1);
  finding.operands[1].lineage[0].at = *finding.where;
  find_in_call(finding);
  CHECK(finding.operands[1].name.empty());
  finding.operands[1].lineage[0].at = call(source, "1. / scale");
  finding.operands[1].lineage[0].at.line = finding.operands[1].lineage[0].at.end_line = 2;
  find_in_call(finding);
  CHECK(finding.operands[1].name.empty());
}

TEST_CASE("Arguments of a script are no names for the operands of an operator inside") {
  const std::string source = "    return self.embed(steps, self.width)";
  Finding finding;
  finding.op = "aten::mul.Tensor";
  finding.where = call(source, "self.embed(steps, self.width)");
  finding.stack = {*finding.where};
  finding.operands = {operand("self"), operand("other")};
  finding.operands[1].lineage.resize(1);
  finding.operands[1].lineage[0].at = *finding.where;
  finding.operands[1].lineage[0].op = "aten::exp";
  find_in_call(finding);
  CHECK(finding.operands[0].name.empty());
  CHECK(finding.operands[1].name.empty());
  finding.operands[1].lineage[0].op = finding.op;  // what the same call made before, in a loop
  find_in_call(finding);
  CHECK(finding.operands[1].name == "self.width");
}

}  // namespace
}  // namespace devsan::report
