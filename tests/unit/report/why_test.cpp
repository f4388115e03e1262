// What the rules say of findings, by cause and change.
#include <catch2/catch.hpp>

#include "report/why/explain.h"
#include "report/why/wording.h"
#include "samples.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;

Finding explained(Finding finding) {
  finding.root_cause.reset();
  finding.fix.reset();
  explain(finding);
  return finding;
}

TEST_CASE("A norm left on the device is the cause where its scalar meets a CPU tensor") {
  const Finding finding = samples::offloaded_gradient();
  REQUIRE(finding.root_cause);
  CHECK(finding.root_cause->line == 2029);
  CHECK(finding.root_cause->function == "Optimizer.step");
  CHECK(finding.root_cause->operand == "1. / combined_scale");
  REQUIRE(finding.fix);
  CHECK(finding.fix->line == 2029);
  CHECK_THAT(finding.fix->text, Contains("`.item()`") && Contains("partitioned.py:2117"));
}

TEST_CASE("Without a reduction the cause is where the scalar came to the device") {
  Finding finding = samples::offloaded_gradient();
  auto& lineage = finding.operands[1].lineage;
  std::erase_if(lineage, [](const LineageStep& step) { return step.at.line == 2029; });
  CHECK(explained(finding).root_cause->line == 1402);
  lineage[2].how = trace::How::moved;
  CHECK(explained(finding).root_cause->line == 2115);
}

TEST_CASE("What happened to a value on its former device is not the cause") {
  Finding finding = samples::offloaded_gradient();
  auto& lineage = finding.operands[1].lineage;
  lineage[2].how = trace::How::moved;
  for (std::size_t i = 3; i < lineage.size(); ++i) lineage[i].device = "cpu";
  CHECK(explained(finding).root_cause->line == 2115);
}

TEST_CASE("A scalar without history gets a change, but no cause") {
  Finding finding = samples::offloaded_gradient();
  finding.operands[1].lineage.clear();
  finding = explained(finding);
  CHECK_FALSE(finding.root_cause);
  REQUIRE(finding.fix);
  CHECK(finding.fix->line == 2117);
  CHECK_THAT(finding.fix->text, Contains(".item()"));
}

TEST_CASE("A factory without device in the user's own code is where to pass one") {
  const Finding finding = samples::plain_attribute();
  REQUIRE(finding.root_cause);
  CHECK(finding.root_cause->line == 19);
  REQUIRE(finding.fix);
  CHECK(finding.fix->line == 19);
  CHECK_THAT(finding.fix->text, Contains("`device='cuda:0'`") && Contains("`self.bias.to(s.device)`"));
}

TEST_CASE("A factory that names a device is to be told another one") {
  Finding finding = samples::plain_attribute();
  finding.operands[1].lineage.back().at.source = "x = torch.zeros(3, device=d)";
  finding = explained(finding);
  CHECK(finding.root_cause->line == 19);
  CHECK_THAT(finding.fix->text, Contains("Make it on cuda:0"));
}

TEST_CASE("A factory in a library, and an unknown one, is not to be changed") {
  Finding finding = samples::plain_attribute();
  finding.operands[1].lineage.back().at.library = true;
  CHECK_FALSE(explained(finding).root_cause);
  CHECK(explained(finding).fix->line == 23);
  finding.operands[1].lineage.clear();
  CHECK_FALSE(explained(finding).root_cause);
  CHECK_THAT(explained(finding).fix->text, Contains("`self.bias.to(s.device)`"));
}

TEST_CASE("A parameter that stayed on the CPU asks for its module to be moved") {
  Finding finding = samples::plain_attribute();
  finding.operands[1].is = trace::NameKind::parameter;
  finding = explained(finding);
  CHECK(finding.fix->line == 19);
  CHECK_THAT(finding.root_cause->why, Contains("`self.bias` is a parameter"));
  CHECK_THAT(finding.fix->text, Contains(".to('cuda:0')"));
}

TEST_CASE("A generator elsewhere is to be made on the tensors' device") {
  Finding finding = samples::plain_attribute();
  finding.operands[1].generator = true;
  finding.operands[1].shape.reset();
  CHECK_THAT(explained(finding).fix->text, Contains("torch.Generator(device='cuda:0')"));
}

TEST_CASE("What PyTorch allowed, and what has no odd operand, gets no change") {
  CHECK_FALSE(explained(samples::allowed_scalar()).fix);
  Finding finding = samples::plain_attribute();
  finding.operands.clear();
  CHECK_FALSE(explained(finding).fix);
}

TEST_CASE("The call that moves an operand is an expression of the program") {
  Operand odd;
  odd.arg = "other";
  odd.device = "cpu";
  odd.shape.emplace();
  Operand tensor = odd;
  tensor.device = "cuda:1";
  const auto call = [&](const char* odd_name, const char* tensor_name) {
    odd.name = odd_name;
    tensor.name = tensor_name;
    return why::move_call(odd, tensor);
  };
  CHECK(call("scale", "x") == "scale.to(x.device)");
  CHECK(call("table[i + 1]", "self.x") == "table[i + 1].to(self.x.device)");
  CHECK(call("1. / scale", "x") == "(1. / scale).to(x.device)");
  CHECK(call("scale", "layers.3.weight") == "scale.to('cuda:1')");
  CHECK(call("scale", "x + y") == "scale.to('cuda:1')");
  CHECK(call("layers.3.weight", "x") == ".to(x.device)");
  CHECK(call("", "") == ".to('cuda:1')");
}

}  // namespace
}  // namespace devsan::report
