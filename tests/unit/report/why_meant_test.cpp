// Rules that read from what is written how it was meant: another line that moves, a method that would, a name, a place.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A line that reads as the failing one does tells how that should move") {
  Finding finding = add("branch");
  odd(finding).lineage = {derived(line(29, "Net.forward", "        branch = self.mlp(x.cpu())"))};
  find(odd(finding), EvidenceKind::twin_moves_at, line(28, "Net.forward", "        x = x + self.mix(x).to(x.device)"),
       "branch.to(x.device)");
  const Finding told = explained(finding);
  CHECK(told.rule == "twin_moves");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("`branch.to(x.device)`"));

  SECTION("not where the other line brings to the host what is missed on an accelerator") {
    odd(finding).evidence.front().text = "branch.cpu()";
    CHECK(rule_of(finding) != "twin_moves");
  }
  SECTION("not of a weight") {
    odd(finding).is = NameKind::parameter;
    CHECK(rule_of(finding) != "twin_moves");
  }
}

TEST_CASE("An object with a method that would move what it keeps is to be told where it is made") {
  Finding finding = add("table");
  odd(finding).lineage = {created(line(12, "Solver", "    table = torch.tensor([0.5])"))};
  find(odd(finding), EvidenceKind::own_move_unused_at, line(62, "<module>", "solver = Solver()"), "Solver.to");
  const Finding told = explained(finding);
  CHECK(told.rule == "own_move_not_called");
  CHECK(cause_line(told) == 62);
  CHECK_THAT(told.fix->text, Contains("`solver.to('cuda:0')`"));

  SECTION("without a name the call is told alone") {
    odd(finding).evidence.front().at = line(62, "<module>", "run(Solver())");
    CHECK_THAT(explained(finding).fix->text, Contains("its `to('cuda:0')`"));
  }
  SECTION("not where it was moved to the CPU since") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(20, "main", "solver.to('cpu')"), "cpu"));
    CHECK(rule_of(finding) != "own_move_not_called");
  }
}

// `mean`, taken from `MEAN` in line 28 of the function that fails.
Finding of_constant() {
  Finding finding = add("mean");
  odd(finding).lineage = {derived(line(28, "Net.forward", "        mean = MEAN.view(1, -1)")),
                          created(line(3, "<module>", "MEAN = torch.tensor([0.4, 0.5])"))};
  find(odd(finding), EvidenceKind::module_constant_at, line(3, "<module>", "MEAN = torch.tensor([0.4, 0.5])"), "MEAN");
  return finding;
}

TEST_CASE("A constant of a module is brought to a device where a function takes it") {
  const Finding told = explained(of_constant());
  CHECK(told.rule == "constant_of_module");
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.fix->text, Contains("`MEAN.to('cuda:0')`"));

  SECTION("which is the failing line where it came by way of others") {
    Finding finding = of_constant();
    odd(finding).lineage.erase(odd(finding).lineage.begin());
    const Finding there = explained(finding);
    CHECK(cause_line(there) == 30);
    CHECK_THAT(there.fix->text, Contains("`mean.to(x.device)`"));
  }
  SECTION("not in a script, which makes it for itself") {
    Finding finding = of_constant();
    finding.where->function = "<module>";
    CHECK(rule_of(finding) != "constant_of_module");
  }
}

TEST_CASE("The copy that is named for an accelerator is the one to take") {
  Finding finding = add("labels");
  odd(finding).lineage = {created(line(20, "Net.forward", "        labels = torch.zeros(4)"))};
  find(odd(finding), EvidenceKind::copied_away, line(21, "Net.forward", "        labels_cuda = labels.cuda()"),
       "cuda:0");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_behind");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("Take `labels_cuda` instead of `labels`"));
}

TEST_CASE("Data that a loader hands out are moved where they are taken, not where they were made") {
  const Frame drawn = line(74, "<module>", "actuals = torch.cat([y for x, y in loader])");
  const Frame kept = line(62, "<module>", "series = torch.arange(120) / 6.0");
  Finding finding = add("target");
  LineageStep stacked = derived(drawn);
  stacked.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py";
  odd(finding).lineage = {derived(drawn), stacked, derived(kept), created(kept)};
  find(odd(finding), EvidenceKind::first_bound_at, kept, "series");
  const Finding told = explained(finding);
  CHECK(told.rule == "data_not_moved");
  CHECK(cause_line(told) == 74);
  CHECK_THAT(told.fix->text, Contains("`actuals = torch.cat([y for x, y in loader]).to('cuda:0')`"));

  SECTION("of a loop the line behind it") {
    for (auto step = odd(finding).lineage.begin(); step != odd(finding).lineage.begin() + 2; ++step) {
      step->at.source = "for x, y in loader:";
    }
    CHECK_THAT(explained(finding).fix->text, Contains("behind this line"));
  }
  SECTION("not where no loader made it") {
    odd(finding).lineage.erase(odd(finding).lineage.begin() + 1);
    CHECK(rule_of(finding) == "made_without_device");
  }
}

TEST_CASE("A loop that takes numbers out of a tensor on a device is told instead of who made the tensor") {
  Finding finding = add("end");
  finding.raised = false;
  finding.kind = Kind::implicit_sync;
  finding.severity = Severity::warning;
  finding.where = line(34, "encode", "        part = values[:, start:end]");
  finding.operands = {odd(finding)};
  finding.operands[0].device = "cuda:0";
  finding.operands[0].lineage = {moved(line(18, "Columns.to", "        self.offset.to(device)"), "cuda:0")};
  finding.traffic = Traffic{};
  finding.traffic->taker = "aten::slice.Tensor";
  CHECK(cause_line(explained(finding)) == 18);
  finding.traffic->copy = line(33, "encode", "    for start, end in zip(offset[:-1], offset[1:]):");
  const Finding told = explained(finding);
  CHECK(told.rule == "number_on_device");
  CHECK(cause_line(told) == 33);
  CHECK_THAT(told.fix->text, Contains("`.tolist()`"));
}

TEST_CASE("A method that takes a state over as it was loaded is the line to change") {
  Finding finding = add("rates");
  finding.where->function = "Optimizer.step";
  const Frame load = line(83, "<module>", "state = torch.load(path, map_location='cpu')");
  LineageStep read = created(load);
  read.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/serialization.py";
  read.innermost.line = 1500;
  odd(finding).lineage = {derived(line(60, "Optimizer.load", "        self.state[p]['rates'] = old.float()")), read};
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 60);

  SECTION("not another object's") {
    odd(finding).lineage.front().at.function = "Trainer.resume";
    CHECK(cause_line(explained(finding)) == 83);
  }
}

}  // namespace
}  // namespace devsan::report
