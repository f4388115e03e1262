// Rules about what a line made or kept for itself: copies on one of two GPUs, devices kept from before a move, parts
// put in after a list was filled, records of numbers, buffers of a module that nobody moved, totals of several GPUs.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A copy of what is right on its GPU could be made on the other one") {
  Finding finding = between_gpus("labels");
  finding.stack.push_back(line(22, "<module>", "net(ids, labels)"));
  const Frame copy = line(21, "<module>", "labels = ids.clone()", "ids.clone()");
  odd(finding).lineage = {
      with_op(derived(copy, "cuda:1"), "aten::clone"),
      moved(line(20, "<module>", "ids = torch.tensor([1, 4], device=first)", "torch.tensor([1, 4], device=first)"),
            "cuda:1"),
      created(line(20, "<module>", "ids = torch.tensor([1, 4], device=first)"))};
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK(cause_line(told) == 21);
  CHECK_THAT(told.fix->text, Contains("labels = ids.clone().to('cuda:0')"));

  SECTION("not where it is computed") {
    odd(finding).lineage.front() =
        with_op(derived(line(21, "<module>", "labels = ids.clone() + 1", "ids.clone() + 1"), "cuda:1"), "aten::add");
    CHECK(cause_line(explained(finding)) == 20);
  }
  SECTION("not on the CPU, where whoever moved it there decided") {
    odd(finding).device = "cpu";
    for (LineageStep& step : odd(finding).lineage) step.device = "cpu";
    CHECK(cause_line(explained(finding)) == 20);
  }
}

Finding moved_past_attribute() {
  Finding finding = add("x.to(self.device)", NameKind::temporary);
  const Frame use = line(30, "Net.forward", "        return self.net(x.to(self.device))", "x.to(self.device)");
  odd(finding).lineage = {moved(use, "cpu"), created(line(40, "<module>", "net(torch.ones(2, device=gpu))"), "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, line(12, "Net.__init__", "        self.device = torch.device(device)"),
       "self.device");
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {by_module(moved(line(39, "<module>", "net = Net('cpu').to(gpu)"), "cuda:0")),
                             created(line(13, "Net.__init__", "        self.net = nn.Linear(4, 4)"))};
  return finding;
}

TEST_CASE("An attribute that says where a module was before it moved is told of where it is stored") {
  Finding finding = moved_past_attribute();
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK(cause_line(told) == 12);
  CHECK(says(told, "has moved its weights to cuda:0 since"));

  SECTION("not of weights that were made where they are") {
    wanted(finding).lineage = {created(line(13, "Net.__init__", "        self.net = nn.Linear(4, 4)"), "cuda:0")};
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not where a method of the class moves them") {
    wanted(finding).lineage.front().at.function = "Net.place";
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("What was put into a model after its parameters were collected is told of there") {
  Finding finding = add("adapter.weight", NameKind::parameter);
  const Frame put = line(26, "<module>", "model.adapter = nn.Linear(4, 4)", "nn.Linear(4, 4)");
  odd(finding).lineage = {created(put)};
  find(odd(finding), EvidenceKind::module_made_at, put, "Net");
  find(odd(finding), EvidenceKind::parameters_moved_at, line(20, "onload", "        for p in group:"), "Net");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 26);
  CHECK_THAT(told.fix->text, Contains("before `group` is filled"));

  SECTION("not where the loop asks the model anew") {
    odd(finding).evidence.back().at.source = "        for p in model.parameters():";
    CHECK(cause_line(explained(finding)) == 20);
  }
  SECTION("not of what the model's constructor has made") {
    odd(finding).evidence.front().at.function = "Net.__init__";
    CHECK(cause_line(explained(finding)) == 20);
  }
}

TEST_CASE("Of two tensors that a function puts together alike, the one that it does not move is told of") {
  Finding finding = add("tile");
  finding.where->function = "noise";
  const Frame stack =
      line(17, "noise", "    slopes = torch.stack([a.cos(), a.sin()])", "torch.stack([a.cos(), a.sin()])");
  odd(finding).lineage = {with_op(derived(line(18, "noise", "    tile = slopes.repeat(2, 1)")), "aten::repeat"),
                          with_op(derived(stack), "aten::stack"),
                          created(line(16, "noise", "    a = torch.rand(4)", "torch.rand(4)"))};
  const Frame grid = line(15, "noise", "    grid = torch.stack([x, y]).to(device)");
  wanted(finding).lineage = {moved(grid, "cuda:0"), with_op(derived(grid), "aten::stack"),
                             created(line(14, "noise", "    x = torch.arange(4)"))};
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_beside");
  CHECK(cause_line(told) == 17);

  SECTION("not where they are made otherwise") {
    wanted(finding).lineage[1].op = "aten::cumsum";
    CHECK(rule_of(finding) != "moved_beside");
  }
}

Finding number_met(const char* op) {
  Finding finding = add("record");
  finding.op = op;
  odd(finding).lineage = {created(line(28, "Net.forward", "    record = torch.zeros(4)", "torch.zeros(4)"))};
  wanted(finding).shape.emplace();
  wanted(finding).lineage = {
      with_op(derived(line(12, "accuracy", "    return (a == b).mean()"), "cuda:0"), "aten::mean"),
      created(line(11, "main", "    a = torch.ones(4, device=gpu)"), "cuda:0")};
  find(wanted(finding), EvidenceKind::handed_back_at, line(12, "accuracy", "    return (a == b).mean()"), "accuracy");
  return finding;
}

TEST_CASE("A number that is compared with a record of the host is to be taken there") {
  Finding finding = number_met("aten::gt.Tensor");
  const Finding told = explained(finding);
  CHECK(told.rule == "cuda_scalar_was_python_float");
  CHECK(cause_line(told) == 12);

  SECTION("not one that is computed with it") {
    finding = number_met("aten::mul.Tensor");
    CHECK(rule_of(finding) != "cuda_scalar_was_python_float");
  }
  SECTION("not with what was computed itself") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(),
                                derived(line(29, "Net.forward", "    record = record + 1")));
    CHECK(rule_of(finding) != "cuda_scalar_was_python_float");
  }
}

TEST_CASE("A call that brings one argument to the host is to bring the number beside it") {
  Finding finding = add("n + 1", NameKind::temporary);
  const Frame call = line(20, "main", "        mean(a, p.to(a.device), count)", "p.to(a.device)");
  wanted(finding).device = "cpu";
  wanted(finding).lineage = {moved(call, "cpu"),
                             created(line(9, "main", "    p = torch.ones(4, device=gpu)"), "cuda:0")};
  odd(finding).device = "cuda:0";
  odd(finding).shape.emplace();
  odd(finding).lineage = {derived(line(30, "Net.forward", "    n + 1"), "cuda:0"),
                          created(line(10, "main", "    count = torch.ones((), device=gpu)"), "cuda:0")};
  find(odd(finding), EvidenceKind::bound_at, line(10, "main", "    count = torch.ones((), device=gpu)"), "count");
  finding.stack.push_back(call);
  const Finding told = explained(finding);
  CHECK(told.rule == "cuda_scalar_was_python_float");
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.fix->text, Contains("`count.item()`"));

  SECTION("not where another call gave it") {
    finding.stack.back().source = "        mean(a, p.to(a.device), n)";
    wanted(finding).lineage.front().at.source = "        mean(a, p.to(a.device), n)";
    CHECK(cause_line(explained(finding)) == 10);
  }
}

Finding buffer_of_script() {
  Finding finding = add("self.table", NameKind::buffer);
  odd(finding).lineage = {created(line(16, "Targets.__init__", "        self.register_buffer('table', torch.eye(4))"))};
  find(odd(finding), EvidenceKind::module_bound_at, line(40, "<module>", "loss = Targets()", "Targets()"), "loss");
  return finding;
}

TEST_CASE("A buffer of a module that a script makes begins in its class, and the script has to move the module") {
  Finding finding = buffer_of_script();
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 16);
  CHECK(told.fix->line == 40);

  SECTION("where a function makes it, that line is the cause") {
    odd(finding).evidence.front().at.function = "main";
    CHECK(cause_line(explained(finding)) == 40);
  }
  SECTION("so it is for a part of the module") {
    find(odd(finding), EvidenceKind::root_name, Frame{}, "inner.table");
    CHECK(cause_line(explained(finding)) == 40);
  }
}

Finding taken_in_by_buffer() {
  Finding finding = add("values.max()", NameKind::temporary);
  finding.op = "aten::lerp_.Scalar";
  odd(finding).device = "cuda:0";
  odd(finding).shape.emplace();
  odd(finding).lineage = {with_op(derived(line(30, "Loss.forward", "values.max()"), "cuda:0"), "aten::max"),
                          created(line(9, "main", "values = torch.ones(4, device=gpu)"), "cuda:0")};
  Operand& total = wanted(finding);
  total = {};
  total.arg = "self";
  total.name = "self.stats.high";
  total.device = "cpu";
  total.is = NameKind::buffer;
  total.shape.emplace(1, 1);
  total.lineage = {created(line(16, "Stats.__init__", "        self.register_buffer('high', torch.ones(1))"))};
  return finding;
}

TEST_CASE("A buffer that takes in a number of the GPU is told of, and not the number") {
  Finding finding = taken_in_by_buffer();
  find(wanted(finding), EvidenceKind::module_made_at, line(40, "<module>", "Stats().update(values)"), "Stats");
  const Finding told = explained(finding);
  CHECK(told.rule == "total_made_on_cpu");
  CHECK(cause_line(told) == 16);
  CHECK(told.fix->line == 40);

  SECTION("where its module is made beside what is given on the GPU, at that line") {
    wanted(finding).evidence.front().at = line(40, "<module>", "Loss(actor.to(gpu))(x)", "Loss(actor.to(gpu))");
    find(wanted(finding), EvidenceKind::root_name, Frame{}, "stats.high");
    find(wanted(finding), EvidenceKind::attribute_set_at,
         line(21, "Loss.__init__", "        self.actor, self.stats = actor, Stats()"), "Loss.stats");
    CHECK(cause_line(explained(finding)) == 21);
  }
}

TEST_CASE("One total for what is computed on several GPUs is told of where it begins") {
  Finding finding = between_gpus("total");
  finding.op = "aten::add_.Tensor";
  odd(finding).arg = "self";
  odd(finding).lineage = {created(line(15, "main", "    total = torch.zeros(4, device=layer.weight.device)",
                                       "torch.zeros(4, device=layer.weight.device)"),
                                  "cuda:1")};
  const Finding told = explained(finding);
  CHECK(told.rule == "made_without_device");
  CHECK(cause_line(told) == 15);

  SECTION("not of an operator that makes something new") {
    finding.op = "aten::add.Tensor";
    CHECK(cause_line(explained(finding)) == 0);
  }
}

TEST_CASE("An object that keeps two values as they come has not parted them") {
  Finding finding = add("self.scale", NameKind::attribute);
  const Frame store = line(15, "Matmul.__init__", "        self.weight, self.scale = weight, scale");
  odd(finding).lineage = {created(line(21, "main", "    scale = torch.rand(4)", "torch.rand(4)"))};
  find(odd(finding), EvidenceKind::held_by_object, Frame{}, "Matmul.scale");
  find(odd(finding), EvidenceKind::attribute_set_at, store, "Matmul.scale");
  CHECK(cause_line(explained(finding)) == 15);
  find(wanted(finding), EvidenceKind::attribute_set_at, store, "Matmul.weight");
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("An attribute that a line sends where a setting says was not passed over") {
  Finding finding = add("self.count", NameKind::attribute);
  const Frame store =
      line(16, "Norm.apply", "        self.count = self.count.to(self.device)", "self.count.to(self.device)");
  odd(finding).lineage = {created(line(12, "Norm.__init__", "        self.count = torch.ones(1)"))};
  find(odd(finding), EvidenceKind::attribute_set_at, store, "Norm.count");
  find(odd(finding), EvidenceKind::sibling_moved, line(40, "main", "norm.apply(lambda t: t.to(gpu))"), ".mean");
  CHECK(rule_of(finding) == "left_out_of_move");
  find(odd(finding), EvidenceKind::stayed_at, store);
  const Finding told = explained(finding);
  CHECK(told.rule == "move_did_nothing");
  CHECK(cause_line(told) == 16);
}

TEST_CASE("A buffer that is registered below the move of its module has come into it since") {
  Finding finding = add("rotary.frequencies", NameKind::buffer);
  const Frame made = line(17, "<module>", "register(rotary, 'frequencies', torch.ones(4))", "torch.ones(4)");
  odd(finding).lineage = {created(made)};
  find(odd(finding), EvidenceKind::module_bound_at,
       line(16, "<module>", "rotary = nn.Linear(4, 4).to(gpu)", "nn.Linear(4, 4).to(gpu)"), "rotary");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 17);
  CHECK(says(told, "which model.py:16 has moved by itself"));
}

TEST_CASE("A module that a script puts into a moved model is told of where the script makes it") {
  Finding finding = add("self.kernel", NameKind::buffer);
  odd(finding).lineage = {
      called_by(created(line(12, "Pool.__init__", "        self.register_buffer('kernel', torch.ones(4))")),
                {line(25, "<module>", "    new = Pool()", "Pool()")})};
  find(odd(finding), EvidenceKind::module_bound_at, line(21, "<module>", "net = build().to(gpu)", "build().to(gpu)"),
       "net");
  find(odd(finding), EvidenceKind::root_name, Frame{}, "1.kernel");
  find(odd(finding), EvidenceKind::model_spread, Frame{}, "Net");
  CHECK(cause_line(explained(finding)) == 25);
}

Finding model_on_bare_gpu() {
  Finding finding = between_gpus("images");
  const Frame brought = line(22, "<module>", "images = images.to(second)", "images.to(second)");
  odd(finding).lineage = {moved(brought, "cuda:1"), created(line(20, "<module>", "images = torch.ones(4)"))};
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {
      by_module(moved(line(18, "load", "    tower.to(device=\"cuda\")", "tower.to(device=\"cuda\")"), "cuda:0")),
      created(line(16, "load", "    tower = nn.Linear(4, 4)"))};
  return finding;
}

TEST_CASE("A model that a function moves to the bare GPU meets what its caller takes to another one") {
  Finding finding = model_on_bare_gpu();
  const Finding told = explained(finding);
  CHECK(told.rule == "current_device");
  CHECK(cause_line(told) == 18);

  SECTION("not where the script moves it, and knows both") {
    wanted(finding).lineage.front().at.function = "<module>";
    CHECK(cause_line(explained(finding)) == 22);
  }
  SECTION("not where the other follows a value") {
    odd(finding).lineage.front().at = line(22, "<module>", "images = images.to(rows.device)", "images.to(rows.device)");
    CHECK(cause_line(explained(finding)) == 22);
  }
}

TEST_CASE("A gradient comes back to where the forward has returned its result, and the backward has to bring it over") {
  Finding finding = add("grad_output");
  finding.where = line(30, "Cost.backward", "        return ctx.grads * grad_output", "ctx.grads * grad_output");
  finding.stack = {*finding.where};
  odd(finding).lineage = {
      moved(line(15, "Cost.forward", "        return x.detach().cpu().sum()", "x.detach().cpu()"), "cpu"),
      created(line(40, "main", "x = torch.ones(4, device=gpu)"), "cuda:0")};
  find(odd(finding), EvidenceKind::bound_at, line(29, "Cost.backward", "        grad_output = grad_output.view(-1)"),
       "grad_output");
  find(wanted(finding), EvidenceKind::held_by_object, Frame{}, "CostBackward.grads");
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK(cause_line(told) == 29);

  SECTION("not of what the backward has made") {
    wanted(finding).evidence.clear();
    CHECK(cause_line(explained(finding)) == 15);
  }
  SECTION("not in the backward of another function") {
    odd(finding).lineage.front().at.function = "Other.forward";
    CHECK(cause_line(explained(finding)) == 15);
  }
}

TEST_CASE("A line that follows the dtype of what it will meet could follow the device") {
  Finding finding = add("past");
  odd(finding).lineage = {created(line(15, "<module>", "EMPTY = torch.empty(4)", "torch.empty(4)"))};
  find(odd(finding), EvidenceKind::came_through_at, line(29, "Net.forward", "        past = EMPTY.to(hidden.dtype)"),
       "past");
  CHECK(rule_of(finding) == "made_without_device");
  find(wanted(finding), EvidenceKind::came_through_at, line(28, "Net.forward", "        hidden = self.net(x)"),
       "hidden");
  const Finding told = explained(finding);
  CHECK(told.rule == "dtype_followed_alone");
  CHECK(cause_line(told) == 29);
  CHECK_THAT(told.fix->text, Contains("`.to(hidden.device, hidden.dtype)`"));

  SECTION("also by keyword") {
    odd(finding).evidence.front().at.source = "        past = EMPTY.to(dtype=hidden.dtype)";
    CHECK(rule_of(finding) == "dtype_followed_alone");
  }
  SECTION("not where it names a dtype, or goes on behind that") {
    odd(finding).evidence.front().at.source = "        past = EMPTY.to(torch.float16)";
    CHECK(rule_of(finding) != "dtype_followed_alone");
    odd(finding).evidence.front().at.source = "        past = EMPTY.to(hidden.dtype)[0]";
    CHECK(rule_of(finding) != "dtype_followed_alone");
  }
  SECTION("not of what somebody has moved") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(),
                                moved(line(16, "<module>", "EMPTY = EMPTY.cpu()", "EMPTY.cpu()"), "cpu"));
    CHECK(rule_of(finding) != "dtype_followed_alone");
  }
}

Finding picked_in_script() {
  Finding finding = add("table");
  finding.where = line(30, "<module>", "names = table[labels].cpu()", "table[labels]");
  finding.stack = {*finding.where};
  odd(finding).arg = "self";
  odd(finding).lineage = {created(line(12, "<module>", "table = torch.tensor([2, 5])", "torch.tensor([2, 5])"))};
  Operand& labels = wanted(finding);
  labels.arg = "indices[0]";
  labels.name = "labels";
  labels.lineage = {
      with_op(derived(line(28, "<module>", "labels = net(x).argmax(1)", "net(x).argmax(1)"), "cuda:0"), "aten::argmax"),
      by_module(moved(line(14, "<module>", "net = nn.Linear(4, 2).to(gpu)"), "cuda:0")),
      created(line(14, "<module>", "net = nn.Linear(4, 2).to(gpu)"))};
  return finding;
}

TEST_CASE("What picks from the host for the host is to come there where it is computed") {
  Finding finding = picked_in_script();
  const Finding told = explained(finding);
  CHECK(told.rule == "index_not_brought");
  CHECK(cause_line(told) == 28);

  SECTION("not where the result stays where it is") {
    finding.where = line(30, "<module>", "names = table[labels]", "table[labels]");
    CHECK(rule_of(finding) != "index_not_brought");
  }
  SECTION("also from what a comprehension of the script has brought to the host") {
    finding.where = line(30, "<module>", "names = table[labels]", "table[labels]");
    odd(finding).lineage = {
        moved(line(12, "<listcomp>", "table = torch.cat([x.cpu() for x in parts])", "x.cpu()"), "cpu"),
        created(line(11, "<module>", "parts = [torch.ones(4, device=gpu)]"), "cuda:0")};
    CHECK(rule_of(finding) == "index_not_brought");
    CHECK(cause_line(explained(finding)) == 28);
  }
}

TEST_CASE("A hook of a module whose weight another module has, too, was not passed by") {
  Finding finding = add("embed.weight", NameKind::parameter);
  odd(finding).lineage = {moved(line(21, "offload", "    mod.to('cpu')", "mod.to('cpu')"), "cpu"),
                          created(line(13, "<module>", "embed = nn.Embedding(8, 4)"), "cuda:0")};
  find(odd(finding), EvidenceKind::owner_forward_hook, line(24, "<module>", "m.register_forward_pre_hook(onload)"),
       "onload");
  CHECK(rule_of(finding) == "hook_bypassed");
  find(odd(finding), EvidenceKind::tied_to, Frame{}, "head.weight");
  CHECK(rule_of(finding) != "hook_bypassed");
}

}  // namespace
}  // namespace devsan::report
