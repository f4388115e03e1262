// Rules about who told the line that made or moved a value which device to use.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "mask_of", "    return torch.ones(n, device=device)", "torch.ones(n, device=device)");
const Frame kMoved = line(6, "send", "    return x.to(device)", "x.to(device)");
const Frame kCalled = line(12, "Batch.build", "        self.mask = mask_of(n)", "mask_of(n)");
const Frame kTold = line(13, "Batch.build", "        self.mask = send(mask, 'cpu')", "send(mask, 'cpu')");

TEST_CASE("A call that leaves the device of what it asks for at its default is the cause") {
  Finding finding = add("mask");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::device_from, kCalled, "device='cpu'");
  const Finding told = explained(finding);
  CHECK(told.rule == "made_without_device");
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why, Contains("does not give `device`, whose default is `'cpu'`"));
  CHECK_THAT(told.fix->text, Contains("Pass `device`: `mask_of(n, device='cuda:0')`"));
  find(odd(finding), EvidenceKind::bound_at, line(29, "Net.forward", "    for mask in masks:"), "mask");
  CHECK(cause_line(explained(finding)) == 12);
}

TEST_CASE("A call that tells a helper in so many words where to move a value is the cause") {
  Finding finding = add("mask");
  odd(finding).lineage = {moved(kMoved, "cpu"), created(kMade, "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, kTold, "device");
  CHECK(explained(finding).rule == "moved_away");
  CHECK(cause_line(explained(finding)) == 13);

  SECTION("not where it hands on what it was told") {
    odd(finding).evidence.clear();
    find(odd(finding), EvidenceKind::device_from, line(13, "Batch.build", "        self.mask = send(mask, where)"),
         "device");
    CHECK(cause_line(explained(finding)) == 6);
  }
  SECTION("not where an attribute has kept it since") {
    odd(finding).evidence.clear();
    find(odd(finding), EvidenceKind::device_from, line(3, "Batch.__init__", "        self.device = device"),
         "self.device");
    find(odd(finding), EvidenceKind::device_from, kTold, "device");
    CHECK(cause_line(explained(finding)) == 6);
  }
}

TEST_CASE("A move that did nothing since its function was not given a device is put right by the caller") {
  Finding finding = add("weight", NameKind::parameter);
  odd(finding).lineage = {created(line(8, "Net.__init__", "        self.layer = nn.Linear(3, 3)"))};
  find(odd(finding), EvidenceKind::stayed_at, line(9, "Net.__init__", "        self.to(device)", "self.to(device)"));
  CHECK(cause_line(explained(finding)) == 9);
  find(odd(finding), EvidenceKind::stay_from, kTold, "name");
  CHECK(cause_line(explained(finding)) == 9);
  odd(finding).evidence.pop_back();
  find(odd(finding), EvidenceKind::stay_from, line(20, "main", "    net = Net(3)", "Net(3)"), "device='cpu'");
  const Finding told = explained(finding);
  CHECK(told.rule == "move_did_nothing");
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.fix->text, Contains("Net(3, device='cuda:0')"));
}

TEST_CASE("An attribute that says a device does not follow the weights that what is made on it meets") {
  Finding finding = add("noise");
  odd(finding).lineage = {
      created(line(15, "Flow.sample", "        noise = torch.randn(n, device=self.home)", "torch.randn(n)"))};
  find(odd(finding), EvidenceKind::device_from, line(4, "Flow.__init__", "        self.home = device"), "self.home");
  find(odd(finding), EvidenceKind::device_from, line(40, "main", "    flow = Flow(device)"), "device");
  wanted(finding).is = NameKind::parameter;
  CHECK(cause_line(explained(finding)) == 40);
  wanted(finding).lineage = {moved(line(41, "main", "    flow.net.to('cuda:0')"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(told.rule == "made_without_device");
  CHECK(cause_line(told) == 4);
  CHECK(told.fix->line == 15);
}

TEST_CASE("What is drawn from a generator is moved, since its factory can be told no other device") {
  Finding finding = add("gate");
  odd(finding).lineage = {created(
      line(20, "Flip.draw", "        gate = torch.rand(4, generator=self.rng)", "torch.rand(4, generator=self.rng)"))};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.fix->text, Contains("`torch.rand(4, generator=self.rng).to('cuda:0')`") && !Contains("device="));
}

TEST_CASE("A memo of what came from elsewhere is to blame, not where that came from") {
  Finding finding = add("self._memo['mean']", NameKind::attribute);
  const Frame stored = line(24, "Model.mean", "        self._memo['mean'] = torch.linalg.solve(k, self.y)");
  odd(finding).lineage = {derived(stored),
                          created(line(70, "<module>", "x = torch.randn(12, 2)", "torch.randn(12, 2)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Model._memo['mean']");
  CHECK(cause_line(explained(finding)) == 70);
  find(odd(finding), EvidenceKind::cache_key_at, stored, "self._memo");
  const Finding told = explained(finding);
  CHECK(told.rule == "kept_from_first_call");
  CHECK(cause_line(told) == 24);
}

TEST_CASE("An object that hands a part of itself on as it is, when it is moved, is put right there") {
  Finding finding = add("batch.mask", NameKind::attribute);
  odd(finding).lineage = {created(line(2, "load", "    mask = torch.ones(3)", "torch.ones(3)"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Batch.mask");
  find(odd(finding), EvidenceKind::attribute_set_at, line(10, "Batch.__init__", "        self.mask = mask"),
       "Batch.mask");
  find(odd(finding), EvidenceKind::left_by_own_move,
       line(14, "Batch.to", "        return Batch(self.data.to(device), self.mask)"), "Batch.mask");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_by_own_move");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("This line moves a `Batch`, but hands `mask` on"));

  SECTION("also by way of a variable") {
    odd(finding).evidence.back().at = line(13, "Batch.to", "        mask = self.mask");
    CHECK(cause_line(explained(finding)) == 13);
    CHECK_THAT(explained(finding).root_cause->why, Contains("The method with this line moves a `Batch`, but hands"));
  }
}

TEST_CASE("The call that does not move what another caller of the same helper moves is the cause") {
  Finding finding = add("stop");
  odd(finding).lineage = {created(line(5, "Words.encode", "        return torch.tensor(ids)", "torch.tensor(ids)"))};
  find(odd(finding), EvidenceKind::bound_at, line(29, "Net.forward", "    for stop in self.stops:"), "stop");
  CHECK(explained(finding).rule == "taken_from_elsewhere");
  find(odd(finding), EvidenceKind::made_alike_moved_at, line(40, "main", "    ids = words.encode(text).to('cuda:0')"));
  find(odd(finding), EvidenceKind::asked_apart_at, line(14, "Stops.__init__", "        stop = words.encode(phrase)"));
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_by_other_caller");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("model.py:40 moves what it got from there to cuda:0"));
  CHECK_THAT(told.fix->text, Contains("words.encode(phrase).to("));

  SECTION("not where the helper still runs: a loop over batches makes them all") {
    odd(finding).lineage.front().at = line(28, "Net.forward", "    for x, y in loader:");
    CHECK(explained(finding).rule != "moved_by_other_caller");
  }
  SECTION("not where nobody takes what the call gives") {
    odd(finding).evidence[2].at = line(14, "Net.forward", "        self.fill(n)", "self.fill(n)");
    CHECK(explained(finding).rule != "moved_by_other_caller");
  }
  SECTION("not where the helper moves what it makes") {
    odd(finding).evidence[1].at = line(6, "Words.encode", "        return ids.to(self.device)");
    CHECK(explained(finding).rule != "moved_by_other_caller");
  }
  SECTION("not for what came to the CPU by a move") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(15, "main", "    stop = stop.cpu()"), "cpu"));
    CHECK(explained(finding).rule != "moved_by_other_caller");
  }
}

TEST_CASE("What a method makes for a model that has been moved is put right where it is made") {
  Finding finding = add("self.scores.weight", NameKind::parameter);
  LineageStep made = created(line(13, "Growing.grow", "        wider = nn.Linear(4, labels)", "nn.Linear(4, labels)"));
  made.calls = {line(45, "<module>", "    net.grow(5)")};
  odd(finding).lineage = {made};
  find(odd(finding), EvidenceKind::module_bound_at, line(42, "<module>", "net = Net(3).to(device)"), "net");
  find(odd(finding), EvidenceKind::weights_elsewhere, {}, "cuda:0 6 of 8 Net");
  find(odd(finding), EvidenceKind::module_put_at, line(23, "Net.__init__", "        self.scores = nn.Linear(4, 3)"),
       "Net.scores");
  CHECK(explained(finding).rule == "module_not_moved");
  CHECK(cause_line(explained(finding)) == 13);

  SECTION("and not what is made elsewhere and given to it") {
    odd(finding).lineage[0].calls = {line(45, "<module>", "    net.take(wider(5))")};
    CHECK(cause_line(explained(finding)) != 13);
  }
}

TEST_CASE("The call that hands on what it has a copy of is the cause") {
  Finding finding = add("batch['y']", NameKind::attribute);
  odd(finding).lineage = {created(line(50, "<module>", "data = [{'y': torch.ones(3)}]", "torch.ones(3)"))};
  find(odd(finding), EvidenceKind::copied_away,
       line(18, "place", "    return {k: v.to(dev) for k, v in b.items()}", "v.to(dev)"), "cuda:0");
  find(odd(finding), EvidenceKind::handed_on_at, line(34, "Loop.run", "            self.tell('ended', batch)"),
       "batch for placed");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_behind");
  CHECK(cause_line(told) == 34);
  CHECK(told.fix->text == "Hand on `placed` instead of `batch`.");
}

}  // namespace
}  // namespace devsan::report
