// Rules about what is taken as it comes: modules that are kept, data that a call makes, values of another device by
// name, devices that are asked for too early.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A constructor that moves one module moves the other one that it keeps, too") {
  Finding finding = add("self.lin.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(8, "Net.__init__", "        self.lin = nn.Linear(4, 4)"))};
  const Frame kept = line(24, "Distiller.__init__", "        self.teacher = teacher.eval()");
  find(odd(finding), EvidenceKind::kept_as_given_at, kept, "Distiller.teacher");
  find(odd(finding), EvidenceKind::kept_beside_moved_at, line(18, "Base.__init__", "        self.model.to(device)"),
       "model");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_kept_as_given");
  CHECK(cause_line(told) == 24);
  CHECK_THAT(told.root_cause->why, Contains("model.py:18 moves `self.model` to cuda:0"));
  CHECK_THAT(told.fix->text, Contains("`self.teacher = teacher.eval().to('cuda:0')`"));

  SECTION("not a weight that was moved before") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(9, "main", "net.cpu()"), "cpu"));
    odd(finding).lineage.insert(odd(finding).lineage.begin() + 1, moved(line(7, "main", "net.cuda()"), "cuda:0"));
    CHECK(rule_of(finding) != "module_kept_as_given");
  }
}

TEST_CASE("What a function makes of Python's data is moved where its caller gets it") {
  const Frame called = line(48, "<module>", "    ids = tokenizer(prompts)", "tokenizer(prompts)");
  Finding finding = add("ids");
  LineageStep made = created(line(19, "Tokenizer.__call__", "        return torch.tensor(rows)", "torch.tensor(rows)"));
  made.calls = {called};
  odd(finding).lineage = {made};
  find(odd(finding), EvidenceKind::first_bound_at, called, "ids");
  const Finding told = explained(finding);
  CHECK(told.rule == "data_not_moved");
  CHECK(cause_line(told) == 48);

  SECTION("not what a factory makes, which could be told where") {
    odd(finding).lineage.front().at.source = "        return torch.zeros(n)";
    CHECK(rule_of(finding) == "made_without_device");
  }
  SECTION("not where another line called the function") {
    odd(finding).lineage.front().calls.front().line = 44;
    CHECK(rule_of(finding) == "made_without_device");
  }
}

// `obs`, made on `collect_on`, meets what `learn_on` counts for; line 60 told both.
Finding between_devices() {
  Finding finding = add("obs");
  const Frame told = line(60, "main", "run = Run(collect_on, learn_on)");
  odd(finding).lineage = {created(line(44, "Run.collect", "        obs = torch.randn(4, device=self.collect_device)"))};
  find(odd(finding), EvidenceKind::device_from, told, "collect_device");
  find(odd(finding), EvidenceKind::container_bound_at, line(50, "Run.learn", "        batch = self.store.sample(4)"),
       "batch");
  find(wanted(finding), EvidenceKind::device_from, told, "learn_device");
  return finding;
}

TEST_CASE("What is made for one of two named devices is brought to the other by whoever takes it there") {
  const Finding told = explained(between_devices());
  CHECK(told.rule == "between_named_devices");
  CHECK(cause_line(told) == 50);
  CHECK_THAT(told.fix->text, Contains("Bring what is taken here to `learn_device`"));

  SECTION("not where one line tells the one, and another the other") {
    Finding finding = between_devices();
    wanted(finding).evidence.front().at.line = 61;
    CHECK(rule_of(finding) != "between_named_devices");
  }
  SECTION("not where both go by one name") {
    Finding finding = between_devices();
    wanted(finding).evidence.front().text = "collect_device";
    CHECK(rule_of(finding) != "between_named_devices");
  }
}

TEST_CASE("Who asks a weight for its device before a hook brings it over is told where it rests") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(line(24, "Net.rows", "        rows = torch.arange(4, device=device)"))};
  find(odd(finding), EvidenceKind::device_asked_at, line(21, "Net.rows", "        device = self.pos.weight.device"),
       "self.pos.weight");
  const Finding told = explained(finding);
  CHECK(told.rule == "asked_before_move");
  CHECK(cause_line(told) == 21);
  CHECK_THAT(told.root_cause->why, Contains("asks `self.pos.weight` for the device that `rows` is made on: the CPU"));

  SECTION("not what somebody has moved since") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(25, "Net.rows", "rows.cpu()"), "cpu"));
    CHECK(rule_of(finding) != "asked_before_move");
  }
}

TEST_CASE("What a layer has made as its own state is made there, whoever carries it") {
  Finding finding = add("state['kept']", NameKind::attribute);
  finding.where->function = "Stream.forward";
  odd(finding).lineage = {
      created(line(24, "Stream.begin", "        return {'kept': torch.zeros(4)}", "torch.zeros(4)"))};
  find(odd(finding), EvidenceKind::bound_at,
       line(41, "Net.forward", "        for layer, state in zip(layers, states):"), "state");
  CHECK(rule_of(finding) == "made_without_device");
  CHECK(cause_line(explained(finding)) == 24);

  SECTION("but not what another object made for it") {
    odd(finding).lineage.front().at.function = "Loader.begin";
    CHECK(cause_line(explained(finding)) == 41);
  }
}

TEST_CASE("A function that a spread model calls brings over what it makes itself of its arguments") {
  Finding finding = add("shifted");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  const Frame sent = line(55, "main", "batch = batch.to(first)", "batch.to(first)");
  const Frame makes = line(28, "Net.forward", "        shifted = labels[:, 1:].reshape(-1)");
  odd(finding).lineage = {derived(makes, "cuda:0"), moved(sent, "cuda:0")};
  find(odd(finding), EvidenceKind::model_spread, {}, "Model");
  find(odd(finding), EvidenceKind::bound_at, makes, "shifted");
  find(odd(finding), EvidenceKind::crossing_at, line(39, "Model.forward", "        return loss(logits, labels)"),
       "labels");
  const Finding told = explained(finding);
  CHECK(told.rule == "crossed_over");
  CHECK(cause_line(told) == 28);

  SECTION("not what it only takes apart") {
    odd(finding).evidence[1].at.source = "        shifted = batch['labels']";
    CHECK(cause_line(explained(finding)) == 39);
  }
}

TEST_CASE("A loader that shuffles in a function which sets the default device gets a generator there") {
  Finding finding = add("generator");
  odd(finding).generator = true;
  finding.operands[0].arg = "device";
  finding.operands[0].device_argument = true;
  const Frame loader =
      line(39, "train", "    loader = DataLoader(data, shuffle=True)", "DataLoader(data, shuffle=True)");
  find(odd(finding), EvidenceKind::default_device_at, line(36, "train", "    torch.set_default_device(dev)"));
  find(odd(finding), EvidenceKind::loader_made_at, loader);
  CHECK(rule_of(finding) == "generator_elsewhere");
  CHECK(cause_line(explained(finding)) == 39);

  SECTION("where another function sets it, that is the line") {
    odd(finding).evidence.front().at.function = "setup";
    CHECK(cause_line(explained(finding)) == 36);
  }

  SECTION("where the program moves things itself, nobody needs the default") {
    odd(finding).evidence.back().text = "x, y = x.to(dev), y.to(dev)";
    const Finding told = explained(finding);
    CHECK(cause_line(told) == 36);
    CHECK_THAT(told.fix->text, Contains("Leave it out, where all is moved as in `x, y = x.to(dev), y.to(dev)`"));
  }
}

TEST_CASE("A list of numbers on a device is stacked, and not read one by one") {
  Finding finding = add("ratio");
  finding.raised = false;
  finding.kind = Kind::implicit_sync;
  finding.severity = Severity::warning;
  finding.traffic.emplace();
  finding.where = line(30, "step", "    rks = torch.tensor(ratios)", "torch.tensor(ratios)");
  finding.operands = {odd(finding)};
  finding.operands[0].device = "cuda:0";
  finding.operands[0].lineage = {derived(line(26, "step", "    ratios.append(a / b)"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(told.rule == "number_on_device");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("`torch.stack()`"));

  SECTION("what another call takes as a number is told of where it is made") {
    finding.where = line(30, "step", "    rks = torch.full((2,), ratio)", "torch.full((2,), ratio)");
    CHECK(cause_line(explained(finding)) == 26);
  }
}

// `return pipe(latents, **kwargs)`, of a dictionary that was made of what the object keeps.
TEST_CASE("What was parked is brought back where a variable takes it out, through which a call was given it") {
  Finding finding = add("embeds");
  odd(finding).lineage = {moved(line(12, "Processor.park", "        self.kept = {k: v.cpu() for k, v in kept}"), "cpu"),
                          created(line(9, "Processor.encode", "        return torch.ones(4, device=dev)"), "cuda:0")};
  find(odd(finding), EvidenceKind::came_through_at, line(20, "Processor.refine", "        kwargs = dict(self.kept)"),
       "kwargs");
  find(odd(finding), EvidenceKind::came_through_at,
       line(12, "Processor.park", "        self.kept = {k: v.cpu() for k, v in kept}"), "self.kept");
  CHECK(explained(finding).rule == "taken_as_parked");
  CHECK(cause_line(explained(finding)) == 20);

  SECTION("not where that made the container") {
    odd(finding).evidence.front().at.source = "        kwargs = dict()";
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not where the same function parks it") {
    odd(finding).evidence.front().at.function = "Processor.park";
    CHECK(cause_line(explained(finding)) == 30);
  }
}

}  // namespace
}  // namespace devsan::report
