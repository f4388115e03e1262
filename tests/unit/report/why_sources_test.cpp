// Rules about where something comes from that the odd operand's own history does not show.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "main", "    x = torch.randn(4)", "torch.randn(4)");
const Frame kPut = line(9, "Agent.begin", "        self.frames.append(frame)");
const Frame kPutMoved = line(12, "Agent.observe", "        self.frames.append(frame.to(dev))", "frame.to(dev)");

TEST_CASE("Of two lines that fill a container, the one that does not move is the cause, whoever is odd") {
  Finding finding = add("self.frames[0]", NameKind::attribute);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::entry_put_at, kPut, "self.frames");
  wanted(finding).lineage = {moved(kPutMoved, "cuda:0"), created(kMade)};
  find(wanted(finding), EvidenceKind::entry_put_at, kPutMoved, "self.frames");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 9);
  CHECK_THAT(told.root_cause->why, Contains("model.py:12 moves what it puts there to cuda:0"));

  std::swap(odd(finding).odd, wanted(finding).odd);
  CHECK(cause_line(explained(finding)) == 9);
}

TEST_CASE("Entries of two containers have nothing to do with each other") {
  Finding finding = add("self.frames[0]", NameKind::attribute);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::entry_put_at, kPut, "self.frames");
  wanted(finding).lineage = {moved(kPutMoved, "cuda:0"), created(kMade)};
  find(wanted(finding), EvidenceKind::entry_put_at, kPutMoved, "self.others");
  CHECK(cause_line(explained(finding)) == 5);
}

TEST_CASE("A function that a copied module keeps is the cause for the weights of the original") {
  Finding finding = add("self.strength.weight", NameKind::parameter);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::closure_of_copy, line(14, "Gate.__init__", "        self.gate = gate"), "Gate.gate");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("`Gate.gate`"));
}

TEST_CASE("A module that was given away and moved is the cause where it was given, if it had been in the right place") {
  Finding finding = add("self.encoder.weight", NameKind::parameter);
  const Frame away = line(21, "export", "    wrapper = ForExport(policy).to('cpu')", "ForExport(policy).to('cpu')");
  const Frame there = line(25, "main", "    policy = Policy().to(dev)", "Policy().to(dev)");
  find(odd(finding), EvidenceKind::module_shared_at,
       line(16, "ForExport.__init__", "        self.encoder = policy.encoder"), "encoder");
  odd(finding).lineage = {moved(away, "cpu"), moved(there, "cuda:0"), created(kMade)};
  CHECK(cause_line(explained(finding)) == 16);
  odd(finding).lineage = {moved(away, "cpu"), created(kMade, "cuda:1")};
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("The only line that traces is the cause for what a trace makes inside of the failing call") {
  Finding finding = add("x");
  finding.op = "aten::mul.Tensor";
  const Frame& here = *finding.where;
  odd(finding).lineage = {created(here)};
  odd(finding).lineage.front().innermost = here;
  odd(finding).name.clear();
  odd(finding).is = NameKind::temporary;
  find(odd(finding), EvidenceKind::traced_at, line(3, "main", "    f = torch.jit.trace(g, example)"), "");
  CHECK(cause_line(explained(finding)) == 3);
}

TEST_CASE("A factory that is told a device by somebody else is not to blame") {
  Finding finding = add("mask");
  const Frame made =
      line(7, "mask_of", "    return torch.ones(4, device=lengths.device)", "torch.ones(4, device=lengths.device)");
  odd(finding).lineage = {created(made)};
  const Finding nobody = explained(finding);
  CHECK_FALSE(nobody.root_cause.has_value());
  CHECK(nobody.fix->line == 7);

  find(odd(finding), EvidenceKind::device_from, line(20, "main", "    loss = masked(x.to(dev), lengths)"), "lengths");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.root_cause->why, Contains("because of `lengths`"));
}

TEST_CASE("An attribute that a constructor keeps decides nothing; the call that gives it does") {
  Finding finding = add("mask");
  const Frame made =
      line(7, "Net.mask", "    return torch.ones(4, device=self.device)", "torch.ones(4, device=self.device)");
  odd(finding).lineage = {created(made)};
  find(odd(finding), EvidenceKind::device_from, line(3, "Net.__init__", "        self.device = device"), "self.device");
  CHECK_FALSE(explained(finding).root_cause.has_value());
  find(odd(finding), EvidenceKind::device_from, line(40, "main", "    net = Net(4, 'cpu')"), "device");
  CHECK(cause_line(explained(finding)) == 40);
}

TEST_CASE("What is moved to a device that changes is the fault of the line that changed it") {
  Finding finding = add("saved");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {
      moved(line(24, "Park.fetch", "        return tensor.to(self.home)", "tensor.to(self.home)"), "cuda:1")};
  find(odd(finding), EvidenceKind::device_from, line(20, "Park.leave", "        self.home = tensor.device"),
       "self.home");
  CHECK(cause_line(explained(finding)) == 20);
}

TEST_CASE("What holds the operand may be made anew beside the line that moves what it came with") {
  Finding finding = add("norm");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::computed_from, {}, "graph.edges");
  find(odd(finding), EvidenceKind::sibling_moved,
       line(17, "Graph.to", "        moved.x = self.x.to(device)", "self.x.to(device)"), "['x']");
  CHECK(cause_line(explained(finding)) == 17);
  find(odd(finding), EvidenceKind::rebuilt_at, line(16, "Graph.to", "        moved = Graph(self.edges)"), "Graph");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 16);
  CHECK_THAT(told.root_cause->why, Contains("`graph.edges`") && Contains("made anew"));
}

TEST_CASE("A module that was never moved is to be moved where it is made, not where its buffer is") {
  Finding finding = add("self.scale", NameKind::buffer);
  odd(finding).lineage = {
      created(line(6, "Loss.__init__", "        self.register_buffer('scale', torch.ones(4))", "torch.ones(4)"))};
  find(odd(finding), EvidenceKind::module_bound_at, line(31, "main", "    criterion = Loss()"), "criterion");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 31);
  CHECK_THAT(told.root_cause->why, Contains("made in model.py:6") && Contains("`criterion`"));
}

TEST_CASE("Names that are no code are not written into the line that failed") {
  Finding finding = add("members{...}", NameKind::attribute);
  CHECK_THAT(explained(finding).fix->text, Contains("`.to(x.device)`"));
}

TEST_CASE("A weight that was made apart from its model is the cause, not what meets it") {
  Finding finding = add("x");
  odd(finding).lineage = {created(line(22, "Mixer.__init__", "    self.values = nn.Linear(4, 4)", "nn.Linear(4, 4)"))};
  wanted(finding).name = "self.weight";
  wanted(finding).is = NameKind::parameter;
  const Frame made = line(12, "Norm.__init__", "    self.weight = nn.Parameter(torch.ones(4, device=device))");
  wanted(finding).lineage = {created(made, "cuda:0")};
  CHECK(cause_line(explained(finding)) == 22);
  find(wanted(finding), EvidenceKind::weights_elsewhere, {}, "cpu 10 of 12 Decoder");
  CHECK(explained(finding).rule == "weight_apart");
  CHECK(cause_line(explained(finding)) == 12);
  find(wanted(finding), EvidenceKind::device_from, line(26, "Mixer.__init__", "    self.norm = Norm(4, device=where)"),
       "device");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 26);
  CHECK(told.root_cause->operand == "self.weight");
  CHECK_THAT(told.root_cause->why, Contains("10 of 12 parameters and buffers of `Decoder` are on the CPU"));
  SECTION("A weight that was moved there was moved on purpose") {
    wanted(finding).lineage = {moved(line(40, "main", "model.norm.to(dev)"), "cuda:0"), created(made)};
    CHECK(explained(finding).rule != "weight_apart");
  }
  SECTION("The rest of the model is on a third device") {
    wanted(finding).evidence.front().text = "cuda:1 10 of 12 Decoder";
    CHECK(explained(finding).rule != "weight_apart");
  }
}

TEST_CASE("State that an optimizer makes with itself is the cause where the optimizer is made") {
  Finding finding = add("sum of weight", NameKind::attribute);
  find(odd(finding), EvidenceKind::optimizer_state, {}, "sum of weight");
  odd(finding).lineage = {derived(line(21, "Net.optimizer", "return Adagrad(self.parameters())")), created(kMade)};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 21);
  CHECK_THAT(told.fix->text, Contains("are on cuda:0 already"));
}

TEST_CASE("An argument that says where to move is the cause where it is given") {
  Finding finding = add("self.R", NameKind::attribute);
  odd(finding).lineage = {moved(line(13, "Cameras.__init__", "setattr(self, name, value.to(self.device))"), "cpu"),
                          created(kMade, "cuda:0")};
  CHECK(cause_line(explained(finding)) == 13);
  find(odd(finding), EvidenceKind::device_from, line(10, "Cameras.__init__", "    self.device = torch.device(device)"),
       "self.device");
  CHECK(cause_line(explained(finding)) == 13);
  find(odd(finding), EvidenceKind::device_from, line(31, "convert", "    return Cameras(R=R)"), "device");
  CHECK(cause_line(explained(finding)) == 31);
}

TEST_CASE("Of two accelerators the move is not undone where the value may be needed") {
  Finding finding = add("labels");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {moved(line(12, "main", "labels = labels.to(second)"), "cuda:1"), created(kMade)};
  CHECK_THAT(explained(finding).fix->text, Contains("Move it where it is used, in model.py:30: `labels.to("));
}

TEST_CASE("A move that does nothing behind the call that makes a value is what to change") {
  Finding finding = add("mean");
  odd(finding).lineage = {
      created(line(12, "main", "mean = torch.tensor(m).view(1, -1).to(device=self.device)", "torch.tensor(m)"))};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.fix->text, Contains("in `to(device=self.device)`"));
}

TEST_CASE("An edit does not speak of variables that the line does not have") {
  Finding finding = add("target");
  odd(finding).lineage = {created(kMade)};
  odd(finding).spoken = false;
  CHECK_THAT(explained(finding).fix->text, !Contains("target.to("));
}

}  // namespace
}  // namespace devsan::report
