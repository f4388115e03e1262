// Rules about values that are right where they are as long as nobody goes another way: the other branch of a function,
// a default that a call leaves, a program that works on the CPU, a part that comes late.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

// `Policy.act` drew one action and computed the other.
Finding two_branches() {
  Finding finding = add("actions[0]", NameKind::attribute);
  odd(finding).lineage = {
      created(line(19, "Policy.act", "        return torch.randint(2, (1,))", "torch.randint(2, (1,))"))};
  wanted(finding).lineage = {derived(line(20, "Policy.act", "        return self.head(x).argmax()"), "cuda:0")};
  return finding;
}

TEST_CASE("Of two lines that give a function's value the one that makes it on the CPU is the cause") {
  Finding finding = two_branches();
  const Finding told = explained(finding);
  CHECK(told.rule == "made_in_one_branch");
  CHECK(cause_line(told) == 19);
  CHECK_THAT(told.fix->text, Contains("torch.randint(2, (1,), device='cuda:0')"));

  SECTION("also where most operands came from that line") {
    odd(finding).odd = false;
    wanted(finding).odd = true;
    CHECK(cause_line(explained(finding)) == 19);
  }
  SECTION("not where another function computed the other one") {
    wanted(finding).lineage.front().at.function = "Policy.forward";
    CHECK(explained(finding).rule != "made_in_one_branch");
  }
  SECTION("not where it says its device") {
    odd(finding).lineage.front().at = line(19, "Policy.act", "return torch.zeros(1, device=x.device)");
    CHECK(explained(finding).rule != "made_in_one_branch");
  }
  SECTION("not where the function is still running") {
    finding.stack.push_back(line(21, "Policy.act", "        return a + b"));
    CHECK(explained(finding).rule != "made_in_one_branch");
  }
}

// `steps`, which the failing function makes on cuda:0, meets `lengths`; nothing else is there.
Finding alone() {
  Finding finding = add("lengths");
  const Frame made =
      line(28, "Net.forward", "    steps = torch.arange(n, device=place)", "torch.arange(n, device=place)");
  wanted(finding).lineage = {created(made, "cuda:0")};
  find(wanted(finding), EvidenceKind::alone_on_device, {}, "cuda:0");
  odd(finding).lineage = {created(line(51, "<module>", "lengths = torch.tensor([3])"))};
  return finding;
}

TEST_CASE("A tensor that is alone on an accelerator is the mistake in a program that works on the CPU") {
  Finding finding = alone();
  const Finding told = explained(finding);
  CHECK(told.rule == "alone_on_accelerator");
  CHECK(cause_line(told) == 28);

  SECTION("by the call that leaves its device at a default") {
    find(wanted(finding), EvidenceKind::device_from, line(44, "main", "mask(lengths)", "mask(lengths)"),
         "place=\"cuda\"");
    CHECK(cause_line(explained(finding)) == 44);
  }
  SECTION("not beside a weight that nobody moved") {
    odd(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "alone_on_accelerator");
  }
  SECTION("not where one function makes both") {
    odd(finding).lineage.front().at.function = "Net.forward";
    CHECK(explained(finding).rule != "alone_on_accelerator");
  }
  SECTION("not where something else is there") {
    wanted(finding).evidence.clear();
    CHECK(explained(finding).rule != "alone_on_accelerator");
  }
}

TEST_CASE("A helper that is told no device and answers from an accelerator is put right by its caller") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(line(24, "Report.centred", "        rows = torch.tensor(self.rows)"))};
  wanted(finding).lineage = {created(line(14, "column_mean", "    mean = torch.zeros(3, device=device)"), "cuda:0")};
  find(wanted(finding), EvidenceKind::device_from,
       line(25, "Net.forward", "        mean = column_mean(rows)", "column_mean(rows)"), "device=None");
  finding.stack.push_back(line(25, "Net.forward", "        mean = column_mean(rows)", "column_mean(rows)"));
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 25);
  CHECK_THAT(told.fix->text, Contains("`column_mean(rows, device=rows.device)`"));
  SECTION("not where it was given something else") {
    wanted(finding).evidence.front().at =
        line(25, "Net.forward", "        mean = column_mean(table)", "column_mean(table)");
    CHECK(cause_line(explained(finding)) != 25);
  }
  SECTION("not where the call says the device") {
    wanted(finding).evidence.front().text = "device='cuda'";
    CHECK(cause_line(explained(finding)) != 25);
  }
}

TEST_CASE("The branch that does not move a value is the cause, and not who made it") {
  Finding finding = add("mask");
  odd(finding).lineage = {derived(line(52, "Data.batch", "            mask = self.all[rows].float()")),
                          created(line(8, "Data.__init__", "        self.all = torch.ones(9, 4)"))};
  find(odd(finding), EvidenceKind::branch_moves_at,
       line(50, "Data.batch", "            mask = self.all.to(self.device)"), "mask");
  CHECK(rule_of(explained(finding)) == "moved_beside");
  CHECK(cause_line(explained(finding)) == 52);
  SECTION("not where that branch takes it to the host") {
    odd(finding).evidence.front().at.source = "            mask = self.all.cpu()";
    CHECK(rule_of(explained(finding)) != "moved_beside");
  }
  SECTION("not of what was moved itself") {
    odd(finding).lineage.front().how = trace::How::moved;
    CHECK(rule_of(explained(finding)) != "moved_beside");
  }
}

TEST_CASE("A line that only computes with an argument is the cause where the others are moved") {
  Finding finding = add("weights");
  odd(finding).lineage = {derived(line(55, "Net.loss", "        weights = weights / weights.sum()")),
                          derived(line(52, "Data.batch", "        weights = weights.float()")),
                          created(line(70, "<module>", "train(x, y, torch.ones(4))"))};
  find(odd(finding), EvidenceKind::arguments_moved_at,
       line(50, "Data.batch", "        x, y = x.to(self.device), y.to(self.device)"), "weights");
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_beside");
  CHECK(cause_line(told) == 52);
  CHECK_THAT(told.root_cause->why, Contains("moves what comes with it, and not `weights`"));
  odd(finding).lineage.back().at.function = "Data.batch";
  CHECK(rule_of(explained(finding)) != "moved_beside");
}

TEST_CASE("A call that leaves a device at its default means the current GPU") {
  Finding finding = add("x");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {created(line(50, "main", "x = torch.rand(4, device='cuda:1')"), "cuda:1")};
  wanted(finding).lineage = {by_module(moved(line(18, "Hook.before", "        module.to(self.device)"), "cuda:0"))};
  find(wanted(finding), EvidenceKind::device_from, line(35, "Pipe.finish", "self.install()", "self.install()"),
       "device=\"cuda\"");
  const Finding told = explained(finding);
  CHECK(told.rule == "current_device");
  CHECK(cause_line(told) == 35);
  CHECK_THAT(told.fix->text, Contains("Pass `device` here"));

  SECTION("and is the cause where the function takes the device of an argument without it") {
    find(wanted(finding), EvidenceKind::default_stands_at, line(25, "install", "def install(x, device=\"cuda\"):"));
    CHECK(cause_line(explained(finding)) == 35);
    wanted(finding).evidence.back().text = "x.device";
    const Finding by_default = explained(finding);
    CHECK(by_default.rule == "current_device");
    CHECK(cause_line(by_default) == 25);
    CHECK_THAT(by_default.fix->text, Contains("Let the default be None: the function takes `x.device` then."));
  }
}

TEST_CASE("A cache on the host that is read as it is has to be brought back") {
  Finding finding = add("seen");
  odd(finding).lineage = {derived(line(17, "Bank.get", "        return self.rows[[k]]"), "cpu"),
                          created(line(12, "Bank.__init__", "        self.rows = torch.zeros(n, d)"))};
  find(odd(finding), EvidenceKind::filled_from_host_at, line(20, "Bank.get", "        self.rows[k] = made.cpu()"),
       "self.rows");
  const Finding told = explained(finding);
  CHECK(told.rule == "taken_as_parked");
  CHECK(cause_line(told) == 17);
}

// A parameter of `model`, made by `adapt(model)` after most of `model` went to cuda:0.
Finding adapted() {
  Finding finding = add("model.query.down.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(14, "Adapter.__init__", "        self.down = nn.Linear(8, 2)"))};
  odd(finding).lineage.front().calls = {line(25, "adapt", "setattr(module, name, Adapter(old))"),
                                        line(43, "main", "adapt(model)", "adapt(model)")};
  find(odd(finding), EvidenceKind::module_bound_at, line(40, "main", "    model = Model()"), "model");
  find(odd(finding), EvidenceKind::weights_elsewhere, {}, "cuda:0 16 of 28 Model");
  return finding;
}

TEST_CASE("A part that is made when its model has been moved is told by the call that made it") {
  Finding finding = adapted();
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 43);

  SECTION("though a constructor had put another one there before") {
    find(odd(finding), EvidenceKind::module_put_at, line(30, "Block.__init__", "        self.query = Linear(8, 8)"),
         "Block.query");
    CHECK(cause_line(explained(finding)) == 43);
  }
  SECTION("but by the line that puts it in, where one does") {
    find(odd(finding), EvidenceKind::module_put_at, line(26, "adapt", "        block.query = Adapter(old)"),
         "Block.query");
    CHECK(cause_line(explained(finding)) == 26);
  }
  SECTION("not where the model is where it was made") {
    odd(finding).evidence.pop_back();
    CHECK(cause_line(explained(finding)) != 43);
  }
}

TEST_CASE("A Parameter that is moved where it is made is a plain attribute") {
  Finding finding = add("self.gamma", NameKind::attribute);
  const Frame made = line(13, "Scale.__init__", "        self.gamma = nn.Parameter(torch.ones(4)).to(device)");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {moved(made, "cuda:1")};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Scale.gamma");
  find(odd(finding), EvidenceKind::attribute_set_at, made, "Scale.gamma");
  wanted(finding).lineage = {by_module(moved(line(50, "main", "model.to('cuda:0')"), "cuda:0"))};
  const Finding told = explained(finding);
  CHECK(told.rule == "attribute_not_buffer");
  CHECK(cause_line(told) == 13);
  CHECK_THAT(told.fix->text, Contains("nn.Parameter(value.to(device))"));
}

TEST_CASE("What is to be pinned has to stay on the host until it was") {
  Finding finding = add("data");
  finding.message = "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned";
  finding.operands.erase(finding.operands.begin());
  Operand& data = finding.operands.front();
  data.arg = "self";
  data.device = "cuda:0";
  data.lineage = {moved(line(12, "collate", "    return padded.to('cuda')"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 12);
}

}  // namespace
}  // namespace devsan::report
