// Rules about data that come on the CPU, about copies that nobody keeps, and about what decides a device in passing.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kLoop = line(10, "train", "    for images, labels in loader:");
const Frame kTaken = line(12, "train", "        labels = labels.long()", "labels.long()");
const Frame kMadeInData =
    line(3, "Digits.__init__", "        self.y = torch.randint(10, (n,))", "torch.randint(10, (n,))");

LineageStep by_library(const Frame& at) {
  LineageStep step = derived(at);
  step.innermost = library_line(160, "collate", "        return torch.stack(batch)");
  return step;
}

TEST_CASE("Labels of a loader's batch are moved where the loop's function first has them") {
  Finding finding = add("target");
  odd(finding).lineage = {derived(kTaken), by_library(kLoop), created(kMadeInData)};
  CHECK(explained(finding).rule == "made_without_device");
  find(odd(finding), EvidenceKind::first_bound_at, kTaken, "labels");
  const Finding told = explained(finding);
  CHECK(told.rule == "data_not_moved");
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why, Contains("model.py:10 goes through"));
  CHECK_THAT(told.fix->text, Contains("labels = labels.long().to("));

  SECTION("not where something has moved it to the host") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(13, "train", "    y = y.cpu()"), "cpu"));
    CHECK(explained(finding).rule != "data_not_moved");
  }
  SECTION("not where another function's loop made it") {
    odd(finding).lineage[1].at = line(40, "Digits.prepare", "        for part in parts:");
    CHECK(explained(finding).rule != "data_not_moved");
  }
}

TEST_CASE("What a loop over a generator gives is moved where the loop's function first has it") {
  Finding finding = add("mask");
  odd(finding).lineage = {
      created(line(5, "batches", "        src = torch.randint(9, (4,))", "torch.randint(9, (4,))"))};
  find(odd(finding), EvidenceKind::first_bound_at, line(12, "train", "        src = batch.src.T"), "src");
  CHECK(explained(finding).rule == "made_without_device");
  odd(finding).lineage.front().calls = {line(10, "train", "    for batch in batches(9):")};
  const Finding told = explained(finding);
  CHECK(told.rule == "data_not_moved");
  CHECK(cause_line(told) == 12);
}

TEST_CASE("A part of what a loop has drawn is moved where it is taken out") {
  Finding finding = add("scaled");
  odd(finding).lineage = {derived(line(29, "normalized", "    scaled = values / spread")),
                          created(line(22, "windows", "    readings = torch.rand(4, 12)"))};
  find(odd(finding), EvidenceKind::first_bound_at, line(12, "train", "        inputs = window.readings[:, :-1]"),
       "inputs");
  CHECK(explained(finding).rule == "made_without_device");
  find(odd(finding), EvidenceKind::taken_in_loop_at, line(10, "train", "    for window in windows(series):"), "window");
  const Finding told = explained(finding);
  CHECK(told.rule == "data_not_moved");
  CHECK(cause_line(told) == 12);
}

TEST_CASE("An entry of a data set is moved where it is taken") {
  Finding finding = add("x");
  odd(finding).lineage = {created(kMadeInData)};
  find(odd(finding), EvidenceKind::first_bound_at, line(50, "<module>", "x, y = test_data[0]"), "x");
  CHECK(cause_line(explained(finding)) == 50);

  SECTION("also where others that the same line made were moved") {
    find(odd(finding), EvidenceKind::made_alike_moved_at, line(20, "train", "    x = x.to('cuda:0')"));
    find(odd(finding), EvidenceKind::asked_apart_at, line(45, "<module>", "test_data = Digits(10)"));
    CHECK(cause_line(explained(finding)) == 50);
  }
  SECTION("not what is no entry") {
    odd(finding).evidence.front().at.source = "x = noise(4)";
    CHECK(explained(finding).rule == "made_without_device");
  }
  SECTION("not what an object computes from a part of its own") {
    odd(finding).evidence.front().at = line(50, "Digits.update", "        w = self.y[0] * 2");
    CHECK(explained(finding).rule == "made_without_device");
  }
  SECTION("not where the entry is an argument's") {
    odd(finding).evidence.front().at.source = "x = 1 - data.y.view(-1, *[1] * 2)";
    CHECK(explained(finding).rule == "made_without_device");
  }
  SECTION("not what a function made that is no constructor of data") {
    odd(finding).lineage.front().at.function = "table";
    CHECK(explained(finding).rule == "made_without_device");
  }
}

TEST_CASE("A copy that a loop gives to its own variable is lost") {
  Finding finding = add("tokens");
  odd(finding).lineage = {created(line(22, "<module>", "batch = {'tokens': torch.zeros(3)}", "torch.zeros(3)"))};
  find(odd(finding), EvidenceKind::given_at, line(26, "<module>", "logits = model(batch['tokens'])"),
       "batch['tokens']");
  find(odd(finding), EvidenceKind::copied_away, line(25, "<module>", "    value = value.to(dev)", "value.to(dev)"),
       "cuda:0");
  CHECK(explained(finding).rule == "left_behind");
  find(odd(finding), EvidenceKind::rebound_in_loop_at, line(24, "<module>", "for value in batch.values():"), "value");
  const Finding told = explained(finding);
  CHECK(told.rule == "to_result_dropped");
  CHECK(cause_line(told) == 25);
}

TEST_CASE("The dropped copy of a tensor that decides where another is made is the cause") {
  Finding finding = add("table");
  odd(finding).lineage = {created(line(43, "extract", "    table = torch.zeros(3, device=steps.device)"))};
  find(odd(finding), EvidenceKind::device_value_copied_at, line(20, "step", "        t.to(batch.device)"), "steps");
  const Finding told = explained(finding);
  CHECK(told.rule == "to_result_dropped");
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.fix->text, Contains("`t = t.to(batch.device)`"));
  odd(finding).evidence.front().at = line(20, "step", "        u = t.to(batch.device)", "t.to(batch.device)");
  CHECK(explained(finding).rule != "to_result_dropped");
}

TEST_CASE("A line that asks a property for its device is the cause, where the property computes it") {
  Finding finding = add("prefix");
  odd(finding).lineage = {created(line(80, "Net.forward", "    prefix = torch.ones(3, device=self.device)"))};
  CHECK(cause_line(explained(finding)) == 0);
  find(odd(finding), EvidenceKind::device_property_at, line(75, "Net.device", "    def device(self):"), "self.device");
  CHECK(cause_line(explained(finding)) == 80);
  find(odd(finding), EvidenceKind::device_from, line(13, "main", "    net = Net('cpu')"), "device='cpu'");
  CHECK(cause_line(explained(finding)) == 13);
}

TEST_CASE("A property that hands out what was stored once is the cause, and not the line that asks it") {
  Finding finding = add("prefix");
  odd(finding).lineage = {created(line(80, "Net.forward", "    prefix = torch.ones(3, device=self.device)"))};
  find(odd(finding), EvidenceKind::device_property_at, line(76, "Net.device", "        return self._device  # told"),
       "self.device");
  CHECK(cause_line(explained(finding)) == 76);
  odd(finding).evidence.front().at.source = "        return self.weight.device";
  CHECK(cause_line(explained(finding)) == 80);
}

TEST_CASE("A default argument that keeps a variable's value is not where it was made") {
  Finding finding = add("vector");
  odd(finding).lineage = {created(line(9, "<module>", "vector = torch.zeros(3)", "torch.zeros(3)"))};
  find(odd(finding), EvidenceKind::default_argument, line(12, "steer", "    def steer(out, vector=vector):"),
       "steer(vector)");
  CHECK(cause_line(explained(finding)) == 9);
  odd(finding).lineage.front().at =
      line(12, "<module>", "    def steer(out, vector=torch.zeros(3)):", "torch.zeros(3)");
  CHECK(explained(finding).rule == "default_argument");
}

TEST_CASE("An optimizer's state that was loaded before the model was moved is loaded later") {
  Finding finding = add("exp_avg of weight", NameKind::attribute);
  odd(finding).lineage = {created(line(9, "resume", "    saved = torch.load(path, map_location='cpu')"))};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "exp_avg of weight");
  CHECK(cause_line(explained(finding)) == 9);
  find(odd(finding), EvidenceKind::stayed_at, line(11, "resume", "    optimizer.load_state_dict(saved)"));
  const Finding told = explained(finding);
  CHECK(told.rule == "optimizer_state_elsewhere");
  CHECK(cause_line(told) == 11);
}

TEST_CASE("What was passed over by a line that moves its neighbour is no copy from before the move") {
  const Frame made = line(4, "encode", "    scale, zero = fit(weight)", "fit(weight)");
  const Frame map = line(20, "State.map", "    return State(fn(self.scale), self.zero)", "fn(self.scale)");
  Finding finding = add("self.zero", NameKind::attribute);
  odd(finding).lineage = {derived(line(5, "encode", "    zero = low.round()")), created(made)};
  wanted(finding).lineage = {moved(map, "cuda:0"), created(made)};
  CHECK(cause_line(explained(finding)) == 5);
  find(odd(finding), EvidenceKind::sibling_moved, map, ".scale");
  CHECK(cause_line(explained(finding)) == 20);
}

TEST_CASE("A line that applies a function to some parts is the cause, not the function that it applies") {
  const Frame lambda = line(41, "Trainer.step.<locals>.<lambda>", "    scan = scan.map(lambda t: t.to(self.device))");
  Finding finding = add("self.density", NameKind::attribute);
  odd(finding).lineage = {created(line(28, "acquire", "    density = torch.ones(3)"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Scan.density");
  find(odd(finding), EvidenceKind::sibling_moved, lambda, ".samples");
  wanted(finding).lineage = {moved(lambda, "cuda:0")};
  CHECK(cause_line(explained(finding)) == 41);
  wanted(finding).lineage.front().calls = {line(20, "Scan.map", "        return replace(self, a=function(self.a))")};
  CHECK(cause_line(explained(finding)) == 20);
}

TEST_CASE("A module that an evaluation moved in place is missed beside the weights that it goes with") {
  const auto by_module = [](const Frame& at, const char* device) {
    LineageStep step = moved(at, device);
    step.innermost = library_line(1300, "Module.to", "        return self._apply(convert)");
    step.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
    return step;
  };
  const Frame made = line(4, "Net.__init__", "    self.out = nn.Linear(3, 3)");
  const Frame to_first = line(50, "train", "    model = Net().to('cuda:0')");
  Finding finding = add("fast", NameKind::parameter);
  odd(finding).device = "cuda:1";
  std::swap(odd(finding).device, wanted(finding).device);
  odd(finding).lineage = {by_module(to_first, "cuda:0"), created(made)};
  wanted(finding).lineage = {by_module(line(60, "evaluate", "    model.to('cuda:1')"), "cuda:1"),
                             by_module(to_first, "cuda:0"), created(made)};
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_in_place");
  CHECK(cause_line(told) == 60);

  SECTION("not beside what was computed with weights") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), derived(line(20, "f", "    y = x @ w"), "cuda:0"));
    CHECK(explained(finding).rule != "moved_in_place");
  }
}

TEST_CASE("A weight that was where it is missed before a line put a copy from the host into the model") {
  Finding finding = add("self.emb.weight", NameKind::parameter);
  odd(finding).lineage = {moved(line(8, "Engine.__init__", "    masters = [p.cpu() for p in bits]"), "cpu"),
                          moved(line(6, "Engine.__init__", "    model.to(device)"), "cuda:0"),
                          created(line(2, "Net.__init__", "    self.emb = nn.Embedding(9, 4)"))};
  CHECK(cause_line(explained(finding)) == 8);
  find(odd(finding), EvidenceKind::weight_put_at, line(15, "Engine.step", "    p.data = master"), "weight");
  const Finding told = explained(finding);
  CHECK(told.rule == "weight_put_as_it_is");
  CHECK(cause_line(told) == 15);
}

}  // namespace
}  // namespace devsan::report
