// What looks like one of the rules about values that are put together, taken into a copy, named for the host, or taken
// out for other work, and is told of by another one.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "load", "    rows = torch.randn(4)", "torch.randn(4)");

// `torch.cat([x * 2 for x in parts])`, of values on two accelerators.
Finding gathered() {
  Finding finding = add("");
  const char* call = "torch.cat([x * 2 for x in parts])";
  finding.where = line(30, "Net.forward", std::string("        both = ") + call, call);
  finding.stack = {*finding.where};
  wanted(finding).arg = "tensors[0]";
  wanted(finding).name = "";
  wanted(finding).lineage = {derived(line(30, "Net.forward", finding.where->source, "x * 2"), "cuda:0"),
                             created(kMade, "cuda:0")};
  odd(finding).arg = "tensors[1]";
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {derived(line(30, "Net.forward", finding.where->source, "x * 2"), "cuda:1"),
                          created(kMade, "cuda:1")};
  return finding;
}

TEST_CASE("Only entries of one list that the failing line computes are gathered from devices") {
  Finding finding = gathered();
  CHECK(rule_of(finding) == "gathered_from_devices");

  SECTION("not entries that are written out") {
    finding.where->source = "        both = torch.cat([a * 2, b * 2])";
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
  SECTION("not what it has brought there itself") {
    odd(finding).lineage.front().how = trace::How::moved;
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
  SECTION("not what it has made there itself") {
    odd(finding).lineage.pop_back();
    odd(finding).lineage.front().how = trace::How::created;
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
  SECTION("not two arguments of their own") {
    wanted(finding).arg = "self";
    odd(finding).arg = "other";
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
  SECTION("not where nothing is known of one of them") {
    wanted(finding).lineage.clear();
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
}

// `kept.mul_(value)`: `kept` is a clone of what `value` is, which a constructor has put on cuda:1.
Finding averaged() {
  Finding finding = add("value");
  finding.op = "aten::mul_.Tensor";
  finding.where = line(30, "Shadow.update", "        kept.mul_(value)", "kept.mul_(value)");
  finding.stack = {*finding.where};
  const LineageStep made = created(line(4, "Net.__init__", "        self.w = nn.Parameter(torch.ones(4))"));
  const Frame copied = line(12, "Shadow.__init__", "        self.copy = clone_of(model).to(where)");
  wanted(finding).name = "kept";
  wanted(finding).device = "cuda:1";
  wanted(finding).lineage = {moved(copied, "cuda:1"), derived(copied), made};
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {moved(line(50, "main", "    net.cuda()"), "cuda:0"), made};
  return finding;
}

TEST_CASE("A copy on an accelerator of its own takes in what is brought to it, though the other one is odd") {
  Finding finding = averaged();
  const Finding told = explained(finding);
  CHECK(told.rule == "updated_where_kept");
  CHECK(cause_line(told) == 30);
  CHECK(told.root_cause->operand == "value");
  CHECK_THAT(told.root_cause->why, Contains("keeps on cuda:1, the device that it was told, in model.py:12"));
  CHECK_THAT(told.fix->text, Contains("`value.to(kept.device)`"));

  SECTION("not where the constructor says the device in so many words") {
    wanted(finding).lineage.front().at.source = "        self.copy = clone_of(model).to('cuda:1')";
    wanted(finding).lineage.front().at.end_column = -1;
    CHECK(rule_of(finding) != "updated_where_kept");
  }
  SECTION("not where the clone is the newest step: then nothing has moved it") {
    wanted(finding).lineage = {derived(line(12, "Shadow.__init__", "        self.copy = clone_of(model)"), "cuda:1"),
                               created(line(4, "Net.__init__", "        self.w = torch.ones(4)"), "cuda:1")};
    CHECK(rule_of(finding) != "updated_where_kept");
  }
  SECTION("not in code that nobody can change") {
    finding.where->torch = true;
    CHECK(rule_of(finding) != "updated_where_kept");
  }
}

TEST_CASE("A value that another function gives its name, or that is a part of something, is brought over where used") {
  Finding finding = averaged();
  find(odd(finding), EvidenceKind::bound_at, line(58, "main", "    value = net.w.detach()"), "value");
  CHECK(cause_line(explained(finding)) == 30);
  odd(finding).evidence.back() = {EvidenceKind::bound_at, line(27, "Shadow.update", "        values = net.weights()"),
                                  "values"};
  odd(finding).name = "values[0]";
  CHECK(cause_line(explained(finding)) == 30);
  CHECK_THAT(explained(finding).fix->text, Contains("`values[0].to(kept.device)`"));
}

// `offsets + counts_host`, with the latter on cuda:0.
Finding named_for_host() {
  Finding finding = add("offsets");
  odd(finding).lineage = {created(kMade)};
  wanted(finding).name = "counts_host";
  wanted(finding).lineage = {created(
      line(9, "count", "    counts_host = torch.zeros(4, device=device)", "torch.zeros(4, device=device)"), "cuda:0")};
  return finding;
}

TEST_CASE("A name for the host is followed to a line that can be changed") {
  Finding finding = named_for_host();
  const Finding told = explained(finding);
  CHECK(told.rule == "named_for_host");
  CHECK(cause_line(told) == 9);
  CHECK_THAT(told.root_cause->why, Contains("`counts_host` says by its name") && Contains("begins in this line on "));
  CHECK(told.fix->text == "Make it on the CPU in this line.");

  SECTION("also at its beginning, with a counterpart on the device beside it") {
    wanted(finding).name = "self.host_counts";
    CHECK(rule_of(finding) != "named_for_host");
    find(wanted(finding), EvidenceKind::device_twin, {}, "counts");
    CHECK(rule_of(finding) == "named_for_host");
  }
  SECTION("not in a library") {
    wanted(finding).lineage = {created(library_line(9, "count", "    return torch.zeros(4)"), "cuda:0")};
    CHECK(rule_of(finding) != "named_for_host");
  }
  SECTION("not where nobody knows what put it there") {
    wanted(finding).lineage.clear();
    CHECK(rule_of(finding) != "named_for_host");
  }
  SECTION("not by a function's name in it") {
    wanted(finding).name = "x.cpu().sum()";
    CHECK(rule_of(finding) != "named_for_host");
  }
  SECTION("not where the one on the CPU is the one that says so") {
    odd(finding).name = "offsets_cpu";
    wanted(finding).name = "counts";
    CHECK(rule_of(finding) != "named_for_host");
  }
}

// `state`, of a call on cuda:1, and `rows`, which the caller has just put on cuda:0.
Finding taken_out() {
  Finding finding = add("rows");
  const Frame call = line(60, "main", "    net(rows.to(device))", "rows.to(device)");
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {moved(call, "cuda:0")};
  find(odd(finding), EvidenceKind::given_at, call, "rows.to(device)");
  finding.stack = {*finding.where, call};
  wanted(finding).name = "state";
  wanted(finding).device = "cuda:1";
  wanted(finding).lineage = {derived(line(12, "Net.fit", "        return x.mean(0)"), "cuda:1")};
  find(wanted(finding), EvidenceKind::bound_at, line(28, "Net.forward", "        state = self.states[k]"), "state");
  return finding;
}

TEST_CASE("Only what an object has kept from a call that has ended was taken out for other work") {
  Finding finding = taken_out();
  CHECK(rule_of(finding) == "taken_for_other_device");

  SECTION("also where it is one of two, and the other one would be made of what is brought") {
    wanted(finding).evidence.front().at.source = "        state = self.states[k] if known else self.fit(rows)";
    CHECK(rule_of(finding) == "taken_for_other_device");
    wanted(finding).evidence.front().at.source = "        state = self.states[k] if known else self.fit(k)";
    CHECK(rule_of(finding) != "taken_for_other_device");
    wanted(finding).evidence.front().at.source = "        state = self.fit(k) if fresh else self.states[rows]";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("also what is computed from a line that a script has run before") {
    wanted(finding).lineage.push_back(created(line(70, "<module>", "x = torch.randn(4, device=first)"), "cuda:1"));
    finding.stack.push_back(line(71, "<module>", "main()"));
    CHECK(rule_of(finding) == "taken_for_other_device");
    finding.stack.back().line = 70;
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not an entry of what a variable is") {
    wanted(finding).evidence.front().at.source = "        state = states[k]";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not what the failing function computed before it kept it") {
    wanted(finding).lineage.front().at.function = "Net.forward";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not what a caller that runs has computed") {
    wanted(finding).lineage.front().at.function = "main";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not a weight") {
    wanted(finding).is = NameKind::buffer;
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not where the caller says in so many words where the other one goes") {
    const Frame call = line(60, "main", "    net(rows.to('cuda:0'))", "rows.to('cuda:0')");
    odd(finding).lineage = {moved(call, "cuda:0")};
    odd(finding).evidence.front().at = call;
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not where it came there with a module") {
    odd(finding).lineage.front().innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not where the caller that moved it has returned") {
    odd(finding).lineage.front().at.function = odd(finding).evidence.front().at.function = "prepare";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not where another line moved it than gave it") {
    odd(finding).evidence.front().at.line = 61;
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
}

TEST_CASE("A loader's line that is in a library, or long, is told of in words") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(line(14, "Store.sample", "        return torch.zeros(4, device=self.device)"))};
  const Frame load = library_line(40, "restore", "    store = pickle.load(file)");
  find(odd(finding), EvidenceKind::restored_at, load, "store.device");
  CHECK(rule_of(finding) != "device_restored");
  odd(finding).evidence.front().at.library = false;
  CHECK(rule_of(finding) == "device_restored");
  CHECK(cause_line(explained(finding)) == 40);
}

TEST_CASE("A device that is known is handed on in words where the call cannot be written") {
  Finding finding = add("mask");
  odd(finding).lineage = {created(line(5, "causal", "    return torch.ones(n, n, device=device)"))};
  Frame call = line(27, "Net.forward", "        mask = causal(", "causal(");
  call.end_line = 29;
  find(odd(finding), EvidenceKind::device_not_given_at, call, "device=dev");
  const Finding told = explained(finding);
  CHECK(told.rule == "device_not_given");
  CHECK(told.fix->text == "Hand the device on: `device=dev`.");

  SECTION("not where a line has moved it to where it is, by a name of its own") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(),
                                moved(line(7, "causal", "    return m.cpu()", "m.cpu()"), "cpu"));
    odd(finding).lineage.back().device = "cuda:0";
    CHECK(rule_of(finding) != "device_not_given");
  }
  SECTION("not where nothing is known of what made it") {
    odd(finding).lineage.clear();
    CHECK(rule_of(finding) != "device_not_given");
  }
  SECTION("not in a library") {
    odd(finding).evidence.front().at.library = true;
    CHECK(rule_of(finding) != "device_not_given");
  }
}

}  // namespace
}  // namespace devsan::report
