// Rules about what one line decides for all: tables of placements, objects made on one device, attributes and
// properties that say a device, hooks that some modules have, and numbers that stay where they were computed.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A hook that a condition kept from the module is told of at the condition") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(line(5, "main", "    rows = torch.ones(4)", "torch.ones(4)"))};
  const Frame condition = line(12, "dispatch", "    if len(set(device_map.values())) > 1:");
  find(odd(finding), EvidenceKind::hook_missing_at, condition, "not registered");
  const Finding told = explained(finding);
  CHECK(told.rule == "hook_missing");
  CHECK(cause_line(told) == 12);
  CHECK(says(told, "which did not hold: no module has it"));
  CHECK_THAT(told.fix->text, Contains("take in this case, too"));

  SECTION("where others have it, it was passed over") {
    odd(finding).evidence.front().text = "skipped";
    CHECK(says(explained(finding), "has passed this module over: others have it"));
    CHECK_THAT(explained(finding).fix->text, Contains("take in this module, too"));
  }
  SECTION("hooks that were removed have brought it over before") {
    odd(finding).evidence.front().text = "removed";
    CHECK(says(explained(finding), "at an earlier call; this line removes hooks"));
  }
  SECTION("not in a library that did not fail") {
    odd(finding).evidence.front().at.library = true;
    CHECK(rule_of(finding) != "hook_missing");
  }
}

TEST_CASE("A number that was computed on one GPU is to be no tensor on another") {
  Finding finding = between_gpus("count");
  odd(finding).shape.emplace();
  odd(finding).lineage = {
      derived(line(14, "Net.forward", "    count = (ids != 0).sum()", "(ids != 0).sum()"), "cuda:1"),
      created(line(9, "main", "    ids = torch.ones(4, device=dev)"), "cuda:1")};
  find(odd(finding), EvidenceKind::bound_at, line(14, "Net.forward", "    count = (ids != 0).sum()"), "count");
  const Finding told = explained(finding);
  CHECK(told.rule == "number_left_elsewhere");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.fix->text, Contains("`.item()`"));

  SECTION("not of a list that it is an entry of") {
    odd(finding).evidence.front().text = "counts";
    CHECK(rule_of(finding) != "number_left_elsewhere");
  }
  SECTION("not where the line makes it on a device") {
    odd(finding).lineage = {created(line(14, "Net.forward", "    count = torch.tensor(3, device=dev)"), "cuda:1")};
    CHECK(rule_of(finding) != "number_left_elsewhere");
  }
  SECTION("not of a tensor with dimensions") {
    odd(finding).shape->assign(1, 4);
    CHECK(rule_of(finding) != "number_left_elsewhere");
  }
  SECTION("not on the CPU, where a number meets anything") {
    odd(finding).device = "cpu";
    CHECK(rule_of(finding) != "number_left_elsewhere");
  }
}

TEST_CASE("What is made like a weight of the host belongs where the weight's copy works") {
  Finding finding = add("average");
  const Frame like = line(12, "main", "    average = torch.zeros_like(weight)", "torch.zeros_like(weight)");
  odd(finding).lineage = {with_op(derived(like), "aten::zeros_like"),
                          created(line(11, "main", "    weight = torch.ones(4)", "torch.ones(4)"))};
  CHECK(rule_of(finding) != "made_like_kept");
  find(odd(finding), EvidenceKind::source_copied_at, line(14, "main", "        staged = weight.to(dev)"), "cuda:0");
  const Finding told = explained(finding);
  CHECK(told.rule == "made_like_kept");
  CHECK(cause_line(told) == 12);
  CHECK(says(told, "copied to cuda:0 in model.py:14"));
  CHECK_THAT(told.fix->text, Contains("`torch.zeros_like(weight, device='cuda:0')`"));
}

TEST_CASE("Beside what was told a device, the line that names none is told of, on the default device") {
  Finding finding = add("self.speed", NameKind::attribute);
  odd(finding).lineage = {created(line(15, "Actor.__init__", "        self.speed = torch.zeros(3, device=device)"))};
  LineageStep silent =
      created(line(18, "Actor.pull", "        return torch.tensor([0.0])", "torch.tensor([0.0])"), "cuda:0");
  silent.innermost = library_line(80, "DeviceContext.__torch_function__", "        return func(*args)");
  silent.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/utils/_device.py";
  wanted(finding).lineage = {silent};
  const Finding told = explained(finding);
  CHECK(told.rule == "made_by_default_device");
  CHECK(cause_line(told) == 18);
  CHECK_THAT(told.fix->text, Contains("`torch.tensor([0.0], device='cpu')`"));

  SECTION("not where the other says the CPU itself") {
    odd(finding).lineage.front().at = line(15, "rows", "    return torch.zeros(3, device=\"cpu\")");
    CHECK(rule_of(finding) != "made_by_default_device");
  }
  SECTION("not where there is no default device") {
    wanted(finding).lineage.front().innermost = wanted(finding).lineage.front().at;
    CHECK(rule_of(finding) != "made_by_default_device");
  }
}

TEST_CASE("Of modules that a loop puts where a table says, the line that fills the table decides") {
  Finding finding = between_gpus("self[2].weight", NameKind::parameter);
  odd(finding).lineage = {
      by_module(moved(line(31, "main", "    experts[e].to(where)", "experts[e].to(where)"), "cuda:1"))};
  find(odd(finding), EvidenceKind::device_from, line(25, "plan", "        table[e] = devices[e // 2]"), "table[...]");
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK(cause_line(told) == 25);
  CHECK(says(told, "because of `table[...]`"));
  CHECK_THAT(told.fix->text, Contains("Put what is used together on one device here"));
  odd(finding).device = "cpu";
  CHECK(cause_line(explained(finding)) != 25);
}

TEST_CASE("A value that is brought to the module that is called meets a weight that one line put elsewhere with all") {
  Finding finding = between_gpus("x");
  const Frame move = line(27, "main", "    x = b(x.to(b.weight.device))", "x.to(b.weight.device)");
  odd(finding).lineage = {moved(move, "cuda:1")};
  wanted(finding).is = NameKind::parameter;
  const Frame all = line(24, "main", "    adapters = ModuleList(blocks).to(dev)", "ModuleList(blocks).to(dev)");
  wanted(finding).lineage = {by_module(moved(all, "cuda:0"))};
  CHECK(cause_line(explained(finding)) == 24);
  odd(finding).lineage.front().at = line(27, "main", "    x = b(x.to(other))", "x.to(other)");
  CHECK(cause_line(explained(finding)) == 27);
}

TEST_CASE("Objects that go with parts of a model, made on one device for all, are told of where they are made") {
  Finding finding = between_gpus("k");
  const Frame layers = line(21, "main", "    layers = [make().to(d) for d in devices]", "make().to(d)");
  odd(finding).lineage = {derived(line(24, "main", "    c.update(layer(x))", "layer(x)"), "cuda:1"),
                          by_module(moved(layers, "cuda:1"))};
  wanted(finding).name = "self.keys";
  wanted(finding).lineage = {
      created(line(16, "Cache.__init__", "        self.keys = torch.zeros(4, device=device)"), "cuda:0")};
  CHECK(cause_line(explained(finding)) != 22);
  find(wanted(finding), EvidenceKind::held_by_object, {}, "Cache.keys");
  find(wanted(finding), EvidenceKind::device_from, line(22, "main", "    caches = [Cache(dev) for _ in layers]"),
       "device");
  const Finding told = explained(finding);
  CHECK(told.rule == "crossed_over");
  CHECK(cause_line(told) == 22);
  wanted(finding).evidence.back().at = line(22, "main", "    cache = Cache(dev)");
  CHECK(cause_line(explained(finding)) != 22);
}

Finding brought_by_attribute() {
  Finding finding = add("ids");
  odd(finding).lineage = {created(line(28, "main", "    run(torch.tensor([1]))", "torch.tensor([1])"))};
  const Frame stay = line(19, "Encoder.encode", "        ids = ids.to(self.device)", "ids.to(self.device)");
  find(odd(finding), EvidenceKind::stayed_at, stay);
  find(odd(finding), EvidenceKind::stay_from, line(15, "Encoder.__init__", "        self.device = device"),
       "self.device");
  find(odd(finding), EvidenceKind::stay_from, line(22, "main", "    enc = Encoder('cpu')", "Encoder('cpu')"), "device");
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {
      by_module(moved(line(23, "main", "    enc.model.to(dev)", "enc.model.to(dev)"), "cuda:0"))};
  return finding;
}

TEST_CASE("A line that asks an attribute for a device, which weights have left since, asks the wrong one") {
  Finding finding = brought_by_attribute();
  const Finding told = explained(finding);
  CHECK(told.rule == "move_did_nothing");
  CHECK(cause_line(told) == 19);
  CHECK(says(told, "which the attribute does not follow"));
  wanted(finding).lineage.front().at = line(16, "Encoder.__init__", "        self.model = build().to(dev)");
  CHECK(cause_line(explained(finding)) == 22);
}

TEST_CASE("A device that an object takes over with its state is told of where it is taken over") {
  Finding finding = brought_by_attribute();
  const Frame taken = line(18, "Encoder.load", "        self.device = state['device']");
  odd(finding).evidence = {odd(finding).evidence.front()};
  find(odd(finding), EvidenceKind::stay_from, taken, "self.device");
  CHECK(cause_line(explained(finding)) == 18);
  find(odd(finding), EvidenceKind::device_from, taken, "self.device");
  CHECK(cause_line(explained(finding)) == 18);
}

TEST_CASE("A property that the failing line asks for a device is told of itself") {
  Finding finding = add("ids");
  odd(finding).lineage = {created(line(28, "main", "    run(torch.tensor([1]))", "torch.tensor([1])"))};
  finding.where =
      line(30, "Net.forward", "    return self.embed(ids.to(self.device))", "self.embed(ids.to(self.device))");
  find(odd(finding), EvidenceKind::stayed_at,
       line(30, "Net.forward", "    return self.embed(ids.to(self.device))", "ids.to(self.device)"));
  CHECK(cause_line(explained(finding)) == 30);
  find(odd(finding), EvidenceKind::device_property_at,
       line(20, "Net.device", "        return next(self.parameters()).device"), "self.device");
  CHECK(cause_line(explained(finding)) == 20);
  CHECK(says(explained(finding), "as this property says"));
}

}  // namespace
}  // namespace devsan::report
