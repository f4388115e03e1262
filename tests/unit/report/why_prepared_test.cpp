// Rules about what a library would have moved, what a function takes in two ways alike, and what is made of something
// that is on the host for good reasons.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A loader is given to the library that has placed the model") {
  Finding finding = add("x");
  const Frame loader = line(21, "run", "    loader = DataLoader(data, batch_size=4)", "DataLoader(data, batch_size=4)");
  LineageStep placed = by_module(moved(line(18, "run", "    model = fabric.setup(model)"), "cuda:0"));
  placed.within = {library_line(5, "Fabric.setup", "model.to(device)")};
  wanted(finding).lineage = {placed};
  odd(finding).lineage = {derived(line(25, "run", "    for x, y in loader:")),
                          created(line(16, "run", "    data = TensorDataset(torch.rand(8, 4))"))};
  find(odd(finding), EvidenceKind::drawn_loader_made_at, loader);
  const Finding told = explained(finding);
  CHECK(told.rule == "loader_not_prepared");
  CHECK(cause_line(told) == 21);
  CHECK_THAT(told.fix->text, Contains("`loader = fabric.setup_dataloaders(loader)`"));

  SECTION("one call that prepares all leaves it out") {
    wanted(finding).lineage.front().at =
        line(23, "run", "    model, optimizer = accelerator.prepare(model, optimizer)");
    const Finding left_out = explained(finding);
    CHECK(cause_line(left_out) == 23);
    CHECK_THAT(left_out.fix->text, Contains("`loader = accelerator.prepare(loader)`"));
  }
  SECTION("not one that was prepared") {
    odd(finding).evidence.front().at.source = "    loader = fabric.setup_dataloaders(DataLoader(data))";
    CHECK(rule_of(finding) != "loader_not_prepared");
  }
  SECTION("not where the program moves its model itself") {
    wanted(finding).lineage.front().within.clear();
    CHECK(rule_of(finding) != "loader_not_prepared");
  }
}

TEST_CASE("Of two values that a function takes alike, the one that it does not move is moved there") {
  Finding finding = add("mask");
  const Frame taken = line(18, "step", "    tags = batch['tags']", "batch['tags']");
  odd(finding).lineage = {derived(line(9, "Tagger.forward", "        mask = torch.ones_like(tags)")),
                          created(line(40, "<module>", "batch = {'tags': torch.zeros(4)}"))};
  find(odd(finding), EvidenceKind::first_bound_at, taken, "tags");
  find(odd(finding), EvidenceKind::binding_twin_at, line(17, "step", "    words = batch['words'].to(device)"),
       "batch['tags'].to(device)");
  const Finding told = explained(finding);
  CHECK(told.rule == "twin_moves");
  CHECK(cause_line(told) == 18);
  CHECK(says(told, "leaves `tags` on the CPU, which `mask` comes from"));
  CHECK_THAT(told.fix->text, Contains("`batch['tags'].to(device)`"));

  SECTION("not where the other one goes to the host") {
    odd(finding).evidence.back().text = "batch['tags'].cpu()";
    CHECK(rule_of(finding) != "twin_moves");
  }
}

TEST_CASE("A batch of a type that its mover does not know is handed back as a whole") {
  Finding finding = add("batch.data['pixels']", NameKind::attribute);
  odd(finding).lineage = {created(line(50, "collate", "    return Features(pixels=torch.stack(rows))"))};
  find(odd(finding), EvidenceKind::passed_over_at, line(14, "Trainer.prepare", "        return data"), "Features");
  const Finding told = explained(finding);
  CHECK(told.rule == "handed_back_unmoved");
  CHECK(cause_line(told) == 14);

  SECTION("the branch for what is most like it is to take it, too") {
    find(odd(finding), EvidenceKind::branch_beside, line(11, "Trainer.prepare", "        if isinstance(data, dict):"),
         "dict");
    const Finding branch = explained(finding);
    CHECK(cause_line(branch) == 11);
    CHECK_THAT(branch.fix->text, Contains("`collections.abc.Mapping`"));
  }
  SECTION("not where a part of it was moved") {
    find(odd(finding), EvidenceKind::sibling_moved, line(12, "Trainer.prepare", "        return data.to(device)"), "x");
    CHECK(rule_of(finding) == "left_out_of_move");
  }
}

TEST_CASE("The rank in the whole run is no number of a GPU where others take the local one") {
  Finding finding = add("pixels");
  odd(finding).device = "cuda:1";
  const Frame decided = line(9, "Encoder.__init__", "        self.device = f'cuda:{mapping.rank}'");
  odd(finding).lineage = {moved(line(12, "Encoder.encode", "        x = x.to(self.device)"), "cuda:1")};
  wanted(finding).lineage = {
      moved(line(33, "<module>", "model.to(torch.device('cuda', mapping.local_rank))"), "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, decided, "self.device");
  const Finding told = explained(finding);
  CHECK(told.rule == "device_numbered_by_rank");
  CHECK(cause_line(told) == 9);

  SECTION("not where both are numbered alike") {
    wanted(finding).lineage.front().at.source = "model.to(torch.device('cuda', mapping.rank))";
    CHECK(rule_of(finding) != "device_numbered_by_rank");
  }
  SECTION("not beside `.cuda()`, which may mean the first one") {
    wanted(finding).lineage.front().at.source = "model.cuda()";
    CHECK(rule_of(finding) != "device_numbered_by_rank");
  }
  SECTION("not a remainder, which counts on one machine") {
    odd(finding).evidence.front().at.source = "        self.device = f'cuda:{mapping.rank % 8}'";
    CHECK(rule_of(finding) != "device_numbered_by_rank");
  }
}

TEST_CASE("What is computed from a total on the host is brought back where it is computed") {
  Finding finding = add("dead");
  const Frame computed = line(22, "Counter.dead", "        found = (self.counts == 0).nonzero()");
  odd(finding).lineage = {derived(computed),
                          created(line(14, "Counter.__init__", "        self.counts = torch.zeros(8)"))};
  find(odd(finding), EvidenceKind::source_fed_on_host_at,
       line(18, "Counter.add", "        self.counts += (x > 0).sum(0).cpu()"), "counts");
  const Finding told = explained(finding);
  CHECK(told.rule == "result_of_host_total");
  CHECK(cause_line(told) == 22);
  CHECK(says(told, "model.py:18 brings there what it adds"));

  SECTION("not the total itself") {
    odd(finding).lineage.erase(odd(finding).lineage.begin());
    CHECK(rule_of(finding) != "result_of_host_total");
  }
}

TEST_CASE("What other functions compute from a plain attribute of a moved module leads to the attribute") {
  Finding finding = add("a");
  odd(finding).lineage = {derived(line(7, "corners", "    return torch.cat([boxes[:, :2], boxes[:, 2:]])")),
                          created(line(4, "priors", "    c = torch.arange(grid)"))};
  find(odd(finding), EvidenceKind::kept_source_at, line(20, "SSD.__init__", "        self.priors = priors(4)"),
       "self.priors");
  find(odd(finding), EvidenceKind::source_holder_moved_at, line(50, "<module>", "SSD().to(device)"), "SSD.priors");
  const Finding told = explained(finding);
  CHECK(told.rule == "attribute_not_buffer");
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.fix->text, Contains("register_buffer"));

  SECTION("not one that the module's forward sets") {
    odd(finding).evidence.front().at.function = "SSD.forward";
    CHECK(rule_of(finding) != "attribute_not_buffer");
  }
}

TEST_CASE("What a kept function hands out of a buffer leads to the line that made its module") {
  Finding finding = add("support");
  LineageStep made = created(line(8, "Queue.__init__", "        self.register_buffer('rows', torch.zeros(8, 4))"));
  made.calls = {line(20, "Callback.setup", "        self.queue = Queue(8, 4)"), line(60, "<module>", "fit()")};
  odd(finding).lineage = {made};
  find(odd(finding), EvidenceKind::first_bound_at, line(27, "Net.nearest", "        support = self.queues['rows']()"),
       "support");
  CHECK(cause_line(explained(finding)) == 20);

  SECTION("not an entry of what its object made, which is data") {
    odd(finding).evidence.front().at.source = "        support = self.queues['rows']";
    CHECK(rule_of(finding) == "data_not_moved");
  }
}

TEST_CASE("A module that is put into a moved model is moved where it is made, not in its constructor") {
  Finding finding = add("queue.out", NameKind::buffer);
  LineageStep made = created(line(8, "Queue.__init__", "        self.register_buffer('out', torch.zeros(8, 4))"));
  made.calls = {line(20, "Callback.setup", "        self.shared[key] = Queue(8, 4)"), line(62, "<module>", "setup()")};
  odd(finding).lineage = {made};
  find(odd(finding), EvidenceKind::module_bound_at, line(61, "<module>", "model = Net().to(device)"), "model");
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  CHECK(cause_line(explained(finding)) == 20);

  SECTION("but for a constructor that had another weight of the module at hand") {
    wanted(finding).is = NameKind::parameter;
    wanted(finding).name = "queue.weight";
    CHECK(cause_line(explained(finding)) == 8);
  }
}

TEST_CASE("State that a helper only serves to compute is computed where the helper is called") {
  Finding finding = add("state['norm']");
  const Frame helper = line(5, "norm_of", "    return x.norm(dim=1)");
  odd(finding).lineage = {
      derived(line(12, "Nero.__init__", "        self.state[p]['norm'] = torch.zeros_like(norm_of(p.detach()))")),
      derived(helper), created(line(40, "<module>", "net = nn.Linear(4, 3)"))};
  find(odd(finding), EvidenceKind::computed_before_move, helper, "net.weight");
  find(odd(finding), EvidenceKind::source_moved_at, line(42, "<module>", "net.to(device)"), "cuda:0");
  const Finding told = explained(finding);
  CHECK(told.rule == "computed_before_move");
  CHECK(cause_line(told) == 12);
}

TEST_CASE("What was saved on the host is brought back by who takes it over") {
  Finding finding = add("p");
  LineageStep saved = moved(line(8, "copy_to", "    return value.detach().to(device)"), "cpu");
  saved.calls = {line(19, "Sharded.state_dict", "        return {'groups': copy_to(self.groups, cpu)}"),
                 line(44, "<module>", "opt.load_state_dict(opt.state_dict())")};
  odd(finding).lineage = {saved, moved(line(40, "<module>", "net.to(device)"), "cuda:0")};
  find(odd(finding), EvidenceKind::perhaps_stored_at, line(15, "Sharded.__init__", "        self.groups = [params]"),
       "Sharded.groups");
  find(odd(finding), EvidenceKind::perhaps_stored_at,
       line(22, "Sharded.load_state_dict", "        self.groups = state['groups']"), "Sharded.groups");
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK(cause_line(told) == 22);
  CHECK(says(told, "model.py:8 has brought it to the CPU for that"));

  SECTION("not where that moves it back") {
    odd(finding).evidence.back().at.source = "        self.groups = copy_to(state['groups'].to(device))";
    CHECK(cause_line(explained(finding)) != 22);
  }
  SECTION("not what was moved for other reasons") {
    odd(finding).lineage.front().calls.front().function = "Sharded.offload";
    CHECK(cause_line(explained(finding)) != 22);
  }
}

TEST_CASE("Numbers that one line takes out of a tensor are told of at that line") {
  Finding finding = add("start");
  finding.raised = false;
  finding.kind = Kind::implicit_sync;
  finding.severity = Severity::warning;
  finding.traffic.emplace();
  finding.traffic->copy = line(26, "pad", "    start, end = offsets[b], offsets[b + 1]");
  finding.where = line(30, "pad", "    rows = lse[start:end]", "lse[start:end]");
  finding.operands = {odd(finding)};
  finding.operands[0].device = "cuda:0";
  const Finding told = explained(finding);
  CHECK(told.rule == "number_on_device");
  CHECK(cause_line(told) == 26);
  CHECK(says(told, "This line takes its numbers out of a tensor"));
}

}  // namespace
}  // namespace devsan::report
