// Values that a condition, a file, an optimizer, a hook or a default brings back or leaves where it is: what has to be
// known for each of these to be the cause, and what is told where it is not.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "load", "    rows = torch.randn(4)", "torch.randn(4)");

// `table`, which `Bias.build` makes on `device` and keeps, where `self.size` says so.
Finding guarded() {
  Finding finding = add("self.table", NameKind::attribute);
  odd(finding).lineage = {created(
      line(18, "Bias.build", "        self.table = torch.ones(n, device=device)", "torch.ones(n, device=device)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Bias.table");
  find(odd(finding), EvidenceKind::cache_guard_at, line(26, "Bias.forward", "        if n > self.size:"),
       "        if n > self.size:");
  return finding;
}

TEST_CASE("A condition is the cause only for an attribute that follows a device and is not the constructor's") {
  Finding finding = guarded();
  CHECK(rule_of(finding) == "kept_from_first_call");
  CHECK(cause_line(explained(finding)) == 26);

  SECTION("also where a local name was given to it") {
    odd(finding).name = "table";
    odd(finding).is = NameKind::local;
    CHECK(cause_line(explained(finding)) == 26);
    odd(finding).evidence.erase(odd(finding).evidence.begin());
    CHECK(rule_of(finding) != "kept_from_first_call");
  }
  SECTION("not where it is made without a device: each call makes it on the CPU") {
    odd(finding).lineage.front().at = line(18, "Bias.build", "        self.table = torch.ones(n)", "torch.ones(n)");
    CHECK(rule_of(finding) != "kept_from_first_call");
  }
  SECTION("not where a constructor made it") {
    odd(finding).lineage.front().at.function = "Bias.__init__";
    CHECK(rule_of(finding) != "kept_from_first_call");
  }
  SECTION("not in a library") {
    odd(finding).evidence.back().at.library = true;
    CHECK(cause_line(explained(finding)) == 18);
  }
}

TEST_CASE("What a function that has returned was given, or was made in another line, may have been kept") {
  Finding finding = add("batch[2]", NameKind::attribute);
  const Frame asks = line(40, "main", "    net(buffer.sample(8))", "buffer.sample(8)");
  odd(finding).lineage = {created(line(8, "Buffer.sample", "        return torch.ones(8, device=self.device)",
                                       "torch.ones(8, device=self.device)"))};
  odd(finding).lineage.front().calls = {asks};
  find(odd(finding), EvidenceKind::given_at, asks, "buffer.sample(8)");
  CHECK(rule_of(finding) == "kept_from_first_call");
  finding.stack.push_back(asks);
  CHECK(rule_of(finding) != "kept_from_first_call");
  odd(finding).lineage.front().calls.front().line = 39;
  CHECK(rule_of(finding) == "kept_from_first_call");

  SECTION("but has no name of its own among keyword arguments") {
    odd(finding).name = "kwargs['mask']";
    CHECK(rule_of(finding) != "kept_from_first_call");
  }
}

// `torch.load(path, map_location=where)` in `load`.
Finding loaded(const char* call) {
  Finding finding = add("factor");
  odd(finding).lineage = {created(line(21, "load", std::string("    state = ") + call, call))};
  return finding;
}

TEST_CASE("A default of an argument decides where a file is loaded to") {
  Finding finding = loaded("torch.load(path, map_location=where)");
  find(odd(finding), EvidenceKind::device_from, line(50, "main", "    load(path)", "load(path)"), "where='cpu'");
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 50);
  CHECK_THAT(told.root_cause->why, Contains("does not give `where`, whose default is `'cpu'`"));
  CHECK_THAT(told.fix->text, Contains("`.to('cuda:0')`"));
  odd(finding).evidence.front().at.library = true;
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("What is taken over from a file as an entry is the cause only where it was told to come to the CPU") {
  Finding finding = loaded("torch.load(path, map_location='cpu')");
  const Frame put = line(33, "Shampoo.restore", "        self.factors[p] = state[p]");
  find(odd(finding), EvidenceKind::entry_put_at, put, "self.factors");
  CHECK(cause_line(explained(finding)) == 33);

  SECTION("not by a constructor") {
    odd(finding).evidence.front().at.function = "Shampoo.__init__";
    CHECK(cause_line(explained(finding)) == 21);
  }
  SECTION("not by what stores no entry") {
    odd(finding).evidence.front().at.source = "        self.factors.update(state)";
    CHECK(cause_line(explained(finding)) == 21);
  }
  SECTION("not where the file says the device") {
    odd(finding).lineage = loaded("torch.load(path)").operands[1].lineage;
    CHECK(cause_line(explained(finding)) == 21);
  }
}

TEST_CASE("Of two accelerators that files were saved from, or of a file and the host, none is better") {
  Finding finding = loaded("torch.load(path)");
  odd(finding).device = odd(finding).lineage.front().device = "cuda:1";
  wanted(finding).lineage = {created(line(22, "load", "    x = torch.load(other)", "torch.load(other)"), "cuda:0")};
  CHECK(cause_line(explained(finding)) == 21);
  odd(finding).lineage.front().at.source = "    factor = torch.ones(4)";
  odd(finding).device = odd(finding).lineage.front().device = "cpu";
  CHECK(rule_of(finding) != "loaded_elsewhere");
}

TEST_CASE("State that a lambda makes is told of there where nobody is known to keep its optimizer") {
  Finding finding = add("state['sum']");
  odd(finding).lineage = {derived(line(50, "main.<locals>.<lambda>", "    Trainer(lambda p: Adagrad(p))"))};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "sum");
  CHECK(rule_of(finding) == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 50);
  find(odd(finding), EvidenceKind::attribute_set_at, library_line(12, "Trainer.__init__", "        self.opt = make(p)"),
       "Trainer.opt");
  CHECK(cause_line(explained(finding)) == 50);
}

TEST_CASE("A default device for all of the program does not take an array along") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(line(44, "load", "    rows = torch.from_numpy(array)", "torch.from_numpy(array)"))};
  wanted(finding).lineage = {created(line(45, "main", "    x = torch.ones(4)", "torch.ones(4)"), "cuda:0")};
  CHECK_FALSE(explained(finding).root_cause);
  find(wanted(finding), EvidenceKind::default_device_at, line(3, "<module>", "torch.set_default_device('cuda')"));
  const Finding told = explained(finding);
  CHECK(told.rule == "numpy_round_trip");
  CHECK(cause_line(told) == 44);
  CHECK_THAT(told.root_cause->why, Contains("cuda:0 as model.py:3 says, is for factories alone"));
  CHECK_THAT(told.fix->text, Contains("`torch.from_numpy(array).to('cuda:0')`"));

  SECTION("nor does a block that the same function begins") {
    wanted(finding).evidence = {
        {EvidenceKind::default_device_block_at, line(43, "load", "    with torch.device('cuda'):"), ""}};
    CHECK(cause_line(explained(finding)) == 44);
  }
  SECTION("but a block of another function may be the one that is wrong") {
    wanted(finding).evidence = {
        {EvidenceKind::default_device_block_at, line(43, "build", "    with torch.device('cuda'):"), ""}};
    CHECK_FALSE(explained(finding).root_cause);
  }
}

TEST_CASE("A total is told of by its module's line only where that was never moved") {
  Finding finding = add("loss");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cpu";
  odd(finding).shape = wanted(finding).shape = std::vector<std::int64_t>{};
  wanted(finding).name = "self.total";
  wanted(finding).is = NameKind::buffer;
  wanted(finding).lineage = {created(kMade)};
  find(wanted(finding), EvidenceKind::module_bound_at, line(41, "main", "    metric = Mean()"), "metric");
  CHECK(rule_of(finding) == "total_made_on_cpu");
  wanted(finding).evidence.front().at.library = true;
  CHECK(rule_of(finding) != "total_made_on_cpu");
  wanted(finding).evidence.front().at.library = false;
  wanted(finding).lineage.insert(wanted(finding).lineage.begin(), moved(line(43, "main", "    metric.cpu()"), "cpu"));
  CHECK(rule_of(finding) != "total_made_on_cpu");
}

TEST_CASE("A total of one number may have a dimension, and a tensor of several is none") {
  Finding finding = add("loss");
  odd(finding).device = "cuda:0";
  odd(finding).shape = std::vector<std::int64_t>{};
  wanted(finding).device = "cpu";
  wanted(finding).name = "total";
  wanted(finding).lineage = {created(kMade)};
  wanted(finding).shape = std::vector<std::int64_t>{1};
  CHECK(rule_of(finding) == "total_made_on_cpu");
  wanted(finding).shape = std::vector<std::int64_t>{4};
  CHECK(rule_of(finding) != "total_made_on_cpu");
}

TEST_CASE("Hooks of libraries, and hooks that nobody can find, are no cause") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(kMade)};
  for (const EvidenceKind kind :
       {EvidenceKind::forward_called_at, EvidenceKind::hook_on_list_at, EvidenceKind::hook_leaves_argument_at}) {
    odd(finding).evidence = {{kind, library_line(9, "hook", "    module.forward(x)"), "Linear"}};
    CHECK(rule_of(finding) == "made_without_device");
    odd(finding).evidence.front().at = {};
    CHECK(rule_of(finding) == "made_without_device");
  }
}

TEST_CASE("What a generator fills says where its numbers are wanted, and so does a call that gives none") {
  Finding finding = add("gen");
  odd(finding).generator = true;
  odd(finding).shape.reset();
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cpu";
  finding.where = line(30, "Net.forward", "        x.normal_(generator=gen)", "x.normal_(generator=gen)");
  finding.stack = {*finding.where};
  find(odd(finding), EvidenceKind::bound_at, line(11, "main", "    gen = torch.Generator('cuda')"), "gen");
  CHECK(rule_of(finding) == "generator_elsewhere");
  CHECK(cause_line(explained(finding)) == 11);
  find(odd(finding), EvidenceKind::generator_yielded_at, line(7, "seeded", "    yield torch.Generator('cuda')"),
       "seeded");
  CHECK(cause_line(explained(finding)) == 7);
  odd(finding).evidence.back().at.library = true;
  CHECK(cause_line(explained(finding)) == 11);

  finding.where = line(30, "Net.forward", "        noise = draw(4, gen)", "draw(4, gen)");
  finding.stack = {*finding.where};
  finding.operands.erase(finding.operands.begin());
  CHECK(cause_line(explained(finding)) == 11);
}

TEST_CASE("Only numbers for NumPy are brought over where they were handed on") {
  Finding finding = add("value");
  finding.message = "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor";
  odd(finding).arg = "lengths";
  odd(finding).device = "cuda:0";
  odd(finding).shape = std::vector<std::int64_t>{};
  odd(finding).lineage = {derived(line(12, "measure", "    value = (a == b).sum()"), "cuda:0")};
  find(odd(finding), EvidenceKind::used_once_at, line(13, "measure", "    meter.update(value)"), "value");
  CHECK(rule_of(finding) == "wanted_on_host");
  CHECK(cause_line(explained(finding)) == 30);
  finding.message = "can't convert cuda:0 device type tensor to numpy.";
  CHECK(cause_line(explained(finding)) == 13);
}

TEST_CASE("A number that a log keeps for NumPy is told of where the log is given it") {
  Finding finding = add("values[0]");
  finding.message = "can't convert cuda:0 device type tensor to numpy.";
  odd(finding).device = "cuda:0";
  odd(finding).shape = std::vector<std::int64_t>{};
  odd(finding).lineage = {derived(line(12, "measure", "    value = (a == b).sum()"), "cuda:0")};
  CHECK(cause_line(explained(finding)) == 30);
  find(odd(finding), EvidenceKind::given_to_keep_at, line(22, "train", "    diary.note('loss', loss)"), "note");
  CHECK(cause_line(explained(finding)) == 22);
  CHECK(explained(finding).root_cause->why.find("This call of `note` has it kept as it is.") != std::string::npos);

  SECTION("not one that has dimensions") {
    odd(finding).shape = std::vector<std::int64_t>{3};
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("Unpinned batches are told of without their operand, and in words for a long call") {
  Finding finding = add("batch");
  finding.kind = Kind::unpinned_async_copy;
  finding.operands.clear();
  finding.traffic.emplace();
  finding.traffic->from_loader = true;
  const std::string call =
      "DataLoader(data, batch_size=8, collate_fn=lambda rows: torch.stack([row.float() for row in rows]))";
  finding.traffic->copy = line(12, "main", "    loader = " + call, call);
  CHECK(rule_of(finding) == "pageable_memory");
  CHECK(cause_line(explained(finding)) == 12);
  CHECK(explained(finding).fix->text == "Pass `pin_memory=True` to the DataLoader.");
  finding.kind = Kind::device_mismatch;
  CHECK(rule_of(finding) != "pageable_memory");
}

}  // namespace
}  // namespace devsan::report
