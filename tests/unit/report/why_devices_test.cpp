// Rules about moves that leave a value where it is, and about values that pass from one accelerator to another.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

LineageStep module_moved(const Frame& at, const char* device) {
  LineageStep step = moved(at, device);
  step.innermost = at;
  step.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
  step.innermost.torch = true;
  return step;
}

// `x + NAME` with x on cuda:1 and the odd operand on cuda:0.
Finding between_accelerators(const char* name) {
  Finding finding = add(name);
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  finding.stack = {*finding.where, line(40, "Model.forward", "    y = self.net(x)"), line(60, "<module>", "model(x)")};
  return finding;
}

const Frame kMade = line(5, "load", "    rows = torch.randn(4)", "torch.randn(4)");
const Frame kMoved = line(50, "<module>", "batch = rows.to('cuda:0')", "rows.to('cuda:0')");

TEST_CASE("What one accelerator's weights computed is brought over by the last line that computed it") {
  Finding finding = between_accelerators("loss");
  odd(finding).lineage = {derived(line(21, "Model.loss", "    return x.mean()", "x.mean()"), "cuda:0"),
                          module_moved(line(51, "<module>", "model.to('cuda:0')"), "cuda:0"), created(kMade)};
  const Finding told = explained(finding);
  CHECK(told.rule == "crossed_over");
  CHECK(cause_line(told) == 21);
  CHECK_THAT(told.fix->text, Contains("to cuda:1 in this line"));
}

TEST_CASE("Weights that met the value, and values of the host, are no crossing") {
  Finding finding = between_accelerators("h");
  odd(finding).lineage = {derived(line(21, "Model.forward", "    h = x * 2", "x * 2"), "cuda:0"),
                          module_moved(line(51, "<module>", "model.to('cuda:0')"), "cuda:0"), created(kMade)};
  wanted(finding).is = NameKind::parameter;
  CHECK(explained(finding).rule != "crossed_over");
  wanted(finding).is = NameKind::local;
  CHECK(explained(finding).rule == "crossed_over");
  wanted(finding).device = "cpu";
  CHECK(explained(finding).rule != "crossed_over");
}

TEST_CASE("What a function brought to its device and used there comes back in the line that called it") {
  Finding finding = between_accelerators("target");
  wanted(finding).is = NameKind::parameter;
  const Frame brought = line(12, "Teacher.soften", "        x = x.to(self.device)", "x.to(self.device)");
  odd(finding).lineage = {moved(brought, "cuda:0"), created(kMade)};
  find(odd(finding), EvidenceKind::bound_at, line(41, "Model.forward", "    target = teacher.soften(x)"), "target");
  CHECK(explained(finding).rule == "moved_away");
  odd(finding).lineage.insert(odd(finding).lineage.begin(),
                              derived(line(13, "Teacher.soften", "        return x * 2", "x * 2"), "cuda:0"));
  CHECK(explained(finding).rule == "crossed_over");
  CHECK(cause_line(explained(finding)) == 41);
}

TEST_CASE("What comes from outside is brought over inside of the model that lies on several accelerators") {
  Finding finding = between_accelerators("labels");
  const Frame shifted = line(28, "Net.forward", "        labels = labels[:, 1:].clone()", "labels[:, 1:].clone()");
  odd(finding).lineage = {derived(shifted, "cuda:0"), moved(kMoved, "cuda:0"), created(kMade)};
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  find(odd(finding), EvidenceKind::crossing_at, line(60, "<module>", "net(x, labels)"), "labels");
  Finding told = explained(finding);
  CHECK(told.rule == "inside_spread_model");
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.fix->text, Contains("`labels.to(x.device)`"));

  SECTION("where it is used, as it came") {
    odd(finding).lineage.erase(odd(finding).lineage.begin());
    told = explained(finding);
    CHECK(told.rule == "inside_spread_model");
    CHECK(cause_line(told) == 30);
  }
  SECTION("not what the method itself brought there") {
    odd(finding).lineage = {moved(line(27, "Net.forward", "        labels = labels.to(self.first)"), "cuda:0"),
                            created(kMade)};
    CHECK(explained(finding).rule != "inside_spread_model");
  }
  SECTION("not what it computed there with its weights") {
    odd(finding).lineage = {derived(shifted, "cuda:0"),
                            module_moved(line(51, "<module>", "net.first.to('cuda:0')"), "cuda:0"), created(kMade)};
    CHECK(explained(finding).rule != "inside_spread_model");
  }
  SECTION("not in a part of that model, which is on one") {
    odd(finding).evidence[0].text = "Model";
    CHECK(explained(finding).rule == "crossed_over");
    odd(finding).evidence[0].text = "Ne";
    CHECK(explained(finding).rule == "crossed_over");
  }
  SECTION("not where it meets a weight") {
    wanted(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "inside_spread_model");
  }
}

TEST_CASE("In a model on two accelerators its inputs are handed on; elsewhere the move was wrong") {
  Finding finding = between_accelerators("mask");
  odd(finding).lineage = {
      derived(line(33, "Model.forward", "    mask = m[:, 1:].clone()", "m[:, 1:].clone()"), "cuda:0"),
      moved(kMoved, "cuda:0"), created(kMade)};
  CHECK(cause_line(explained(finding)) == 50);
  find(odd(finding), EvidenceKind::model_spread, {}, "Model");
  CHECK(explained(finding).rule == "crossed_over");
  CHECK(cause_line(explained(finding)) == 33);
}

TEST_CASE("A move to where the value is already is the cause") {
  Finding finding = add("self.anchors", NameKind::attribute);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::stayed_at,
       line(16, "Detector.__init__", "    self.loss = Loss(anchors.to(self.device))", "anchors.to(self.device)"));
  const Finding told = explained(finding);
  CHECK(told.rule == "move_did_nothing");
  CHECK(cause_line(told) == 16);
  CHECK_THAT(told.root_cause->why, Contains("`anchors.to(self.device)`") && Contains("the CPU at that moment"));
  find(odd(finding), EvidenceKind::device_from, line(2, "main", "    Detector(device='cpu')"), "device");
  CHECK(explained(finding).rule != "move_did_nothing");
}

TEST_CASE("What torch.tensor() and conversions of the dtype do by themselves is no move") {
  Finding finding = add("ids");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::stayed_at, kMade);
  CHECK(explained(finding).rule == "made_without_device");
  odd(finding).evidence.front().at = line(9, "main", "    ids = ids.long()", "ids.long()");
  CHECK(explained(finding).rule == "made_without_device");
}

TEST_CASE("A buffer that somebody kept from before the move is the cause where it is kept") {
  Finding finding = add("self.norm.running_mean", NameKind::buffer);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::moved_with_module,
       line(46, "Learner.to", "    self.model.to(d)", "self.model.to(d)"), "cuda:0");
  CHECK(explained(finding).rule != "to_result_dropped");
  find(odd(finding), EvidenceKind::kept_from_before_move,
       line(43, "Learner.__init__", "    self.buffers = dict(model.named_buffers())"),
       "Learner.buffers['running_mean']");
  const Finding told = explained(finding);
  CHECK(told.rule == "buffer_from_before_move");
  CHECK(cause_line(told) == 43);
  CHECK_THAT(told.root_cause->why, Contains("model.py:46") && Contains("`Learner.buffers['running_mean']`"));
}

}  // namespace
}  // namespace devsan::report
