// Rules that read the histories of the operands alone.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kModule = line(4, "<module>", "net = nn.Linear(4, 4)", "nn.Linear(4, 4)");
const Frame kMove = line(8, "<module>", "net.to(dev)");

TEST_CASE("A copy of a parameter from before the move is the cause") {
  Finding finding = add("shadow[0]", NameKind::attribute);
  odd(finding).lineage = {derived(line(6, "<module>", "shadow = [p.detach().clone() for p in net.parameters()]")),
                          created(kModule)};
  wanted(finding).lineage = {moved(kMove, "cuda:0"), created(kModule)};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 6);
  CHECK_THAT(told.root_cause->why, Contains("model.py:8") && Contains("the copy stays behind"));
}

TEST_CASE("A copy of something else is not called a copy from before the move") {
  Finding finding = add("shadow[0]", NameKind::attribute);
  odd(finding).lineage = {derived(line(6, "<module>", "shadow = [p * 2 for p in other.parameters()]")),
                          created(line(5, "<module>", "other = nn.Linear(4, 4)", "nn.Linear(4, 4)"))};
  wanted(finding).lineage = {moved(kMove, "cuda:0"), created(kModule)};
  CHECK(cause_line(explained(finding)) == 5);
}

TEST_CASE("A copy to the host is the cause, with the way back") {
  Finding finding = add("h");
  odd(finding).lineage = {moved(line(20, "Net.pool", "        h = h.mean(1).cpu()", "h.mean(1).cpu()"), "cpu"),
                          created(kModule, "cuda:0")};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.root_cause->why, Contains("puts it on the CPU") && Contains("cuda:0"));
  CHECK_THAT(told.fix->text, Contains("model.py:30") && Contains("`h.to(x.device)`"));
}

TEST_CASE("A number left on the device is the cause where the program took the other operand to the CPU itself") {
  Finding finding = add("errors");
  odd(finding).lineage = {moved(line(20, "main", "errors = loss.cpu()", "loss.cpu()"), "cpu"),
                          created(kModule, "cuda:0")};
  wanted(finding).shape = std::vector<std::int64_t>{};
  LineageStep spread = derived(line(18, "main", "spread = x.std()", "x.std()"), "cuda:0");
  spread.op = "aten::std";
  wanted(finding).lineage = {spread, created(kModule, "cuda:0")};
  CHECK(cause_line(explained(finding)) == 18);
  wanted(finding).lineage = {moved(line(19, "main", "spread = s.to(dev)", "s.to(dev)"), "cuda:0"), created(kModule)};
  CHECK(cause_line(explained(finding)) == 20);
}

TEST_CASE("A copy that a library made is not for the user to change, unless the library failed") {
  Finding finding = add("h");
  odd(finding).lineage = {moved(library_line(20, "gather", "return h.cpu()"), "cpu"), created(kModule, "cuda:0")};
  CHECK(cause_line(explained(finding)) == 0);
  CHECK(explained(finding).fix->line == 30);
  finding.where->library = true;
  CHECK(cause_line(explained(finding)) == 20);
}

TEST_CASE("On two accelerators the line that chose the other one is the cause") {
  Finding finding = add("h");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {derived(line(29, "Net.forward", "        h = self.b(x)"), "cuda:1"),
                          moved(line(12, "<module>", "net.b.to(d1)"), "cuda:1"), created(kModule)};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why, Contains("computed from on cuda:1"));
}

TEST_CASE("A value made for the device of an earlier call, and kept, is the cause") {
  Finding finding = add("self.cache[length]", NameKind::attribute);
  const Frame stored = line(26, "Net.forward", "            self.cache[length] = torch.outer(p, f).cos()");
  odd(finding).lineage = {derived(stored),
                          created(line(25, "Net.forward", "            p = torch.arange(length, device=f.device)",
                                       "torch.arange(length, device=f.device)"))};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 26);
  CHECK_THAT(told.root_cause->why, Contains("an earlier call"));
}

TEST_CASE("A kept value whose factory names no device lacks the device") {
  Finding finding = add("self.cache[length]", NameKind::attribute);
  odd(finding).lineage = {created(
      line(25, "Net.forward", "            self.cache[length] = torch.arange(length)", "torch.arange(length)"))};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 25);
  CHECK_THAT(told.fix->text, Contains("`torch.arange(length, device=x.device)`"));
}

TEST_CASE("A value that a global dictionary kept from an earlier call is the cause where it is stored") {
  Finding finding = add("hidden", NameKind::local);
  odd(finding).lineage = {derived(line(16, "mask", "        masks[key] = (distance < 0) | (distance >= window)")),
                          created(line(15, "mask", "        distance = torch.arange(length, device=device)",
                                       "torch.arange(length, device=device)"))};
  CHECK(cause_line(explained(finding)) == 0);  // which device it was told is not known
  CHECK(explained(finding).fix->line == 15);
  find(odd(finding), EvidenceKind::held_by_global, {}, "masks");
  CHECK(explained(finding).rule == "kept_from_first_call");
  CHECK(cause_line(explained(finding)) == 16);
}

TEST_CASE("What a call that still runs has just asked for was kept by nobody") {
  Finding finding = add("batch[2]", NameKind::attribute);
  odd(finding).lineage = {created(line(8, "Buffer.sample", "        return torch.as_tensor(x, device=self.device)",
                                       "torch.as_tensor(x, device=self.device)"))};
  CHECK(explained(finding).rule == "kept_from_first_call");
  const Frame asks = line(27, "Net.forward", "    batch = self.buffer.sample(8)", "self.buffer.sample(8)");
  odd(finding).lineage.front().calls = {asks};
  find(odd(finding), EvidenceKind::bound_at, asks, "batch");
  CHECK(explained(finding).rule != "kept_from_first_call");
}

TEST_CASE("Of an attribute that is made anew from another one, that one is to be a buffer") {
  Finding finding = add("self.state", NameKind::attribute);
  const Frame begins = line(21, "Memory.begin", "        self.state = self.initial.clone()");
  odd(finding).lineage = {
      derived(begins), created(line(11, "Memory.__init__", "        self.initial = torch.zeros(k)", "torch.zeros(k)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Memory.state");
  find(odd(finding), EvidenceKind::attribute_set_at, begins, "Memory.state");
  CHECK(explained(finding).rule == "attribute_not_buffer");
  CHECK(cause_line(explained(finding)) == 11);
  CHECK(explained(finding).fix->text.find("register_buffer('initial', torch.zeros(k))") != std::string::npos);
  Frame& made = odd(finding).lineage.back().at;
  SECTION("not where it is made of something else") {
    made.source = "        initial = torch.zeros(k)";
  }
  SECTION("not where another class has it") {
    made.function = "Other.__init__";
  }
  SECTION("not where it is the same attribute") {
    made.source = "        self.state = torch.zeros(k)";
  }
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("Of a buffer that is replaced by what a plain attribute holds, that one is to be a buffer") {
  Finding finding = add("self.state", NameKind::buffer);
  const Frame begins = line(21, "Memory.begin", "        self.state = self.initial.clone()");
  odd(finding).lineage = {
      derived(begins), created(line(11, "Memory.__init__", "        self.initial = torch.zeros(k)", "torch.zeros(k)"))};
  find(odd(finding), EvidenceKind::attribute_set_at, begins, "Memory.state");
  const Frame bound = line(30, "<module>", "memory = Memory(4).to(device)");
  find(odd(finding), EvidenceKind::module_bound_at, bound, "memory");
  find(odd(finding), EvidenceKind::children_moved_at, bound, "Memory");
  find(odd(finding), EvidenceKind::model_spread, {}, "Memory");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 11);
  // Made of something else it is not; and the line moves the whole module, not its children one by one.
  odd(finding).lineage.back().at.source = "        initial = torch.zeros(k)";
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("An entry that is made anew in a call is not the attribute's fault") {
  Finding finding = add("self.grids[0]", NameKind::attribute);
  const Frame made = line(19, "Head.grid", "        r, c = torch.meshgrid(torch.arange(h), torch.arange(w))");
  odd(finding).lineage = {derived(line(20, "Head.grid", "        self.grids[scale] = torch.stack((c, r), -1)")),
                          created(made)};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Head.grids[0]");
  find(odd(finding), EvidenceKind::attribute_set_at,
       line(15, "Head.__init__", "        self.grids = [torch.zeros(0) for _ in strides]"), "Head.grids");
  CHECK(cause_line(explained(finding)) == 19);
  odd(finding).evidence.back().at.function = "Head.grid";
  CHECK(explained(finding).rule == "attribute_not_buffer");
  CHECK(cause_line(explained(finding)) == 20);
  odd(finding).lineage.front().op = "aten::copy_";
  CHECK(cause_line(explained(finding)) == 15);
}

TEST_CASE("What a script or an extension makes inside of the failing call has no line of its own") {
  Finding finding = add("");
  finding.where->column = 8;
  finding.where->end_column = 20;
  finding.stack = {*finding.where};
  odd(finding).lineage = {created(*finding.where)};
  odd(finding).lineage.front().op = "aten::arange";
  Finding told = explained(finding);
  CHECK(told.rule == "made_inside_call");
  CHECK(cause_line(told) == 0);
  CHECK_THAT(told.fix->text, Contains("trace with an example on cuda:0"));
  finding.stack.front().torch = true;
  finding.stack.front().file = "/env/site-packages/torch/_ops.py";
  CHECK(explained(finding).rule == "made_inside_call");
  finding.stack.front().file = "/env/site-packages/torch/nn/functional.py";
  CHECK(explained(finding).rule == "made_without_device");
  finding.stack.front().file = "/env/site-packages/torch/nn/modules/module.py";
  finding.stack.front().function = "Module._call_impl";
  CHECK(explained(finding).rule == "made_inside_call");
  finding.stack.front().function = "Module._apply";
  CHECK(explained(finding).rule == "made_without_device");
  odd(finding).lineage.front().at.column = 12;
  finding.stack = {*finding.where};
  CHECK(explained(finding).rule == "made_without_device");
}

TEST_CASE("What a checkpoint holds asks for map_location") {
  Finding finding = add("state['mean']", NameKind::local);
  odd(finding).lineage = {created(line(15, "<module>", "state = torch.load('c.pt')", "torch.load('c.pt')"))};
  Finding told = explained(finding);
  CHECK(cause_line(told) == 15);
  CHECK_THAT(told.fix->text, Contains("`torch.load('c.pt', map_location='cuda:0')`"));
  odd(finding).lineage[0].at =
      line(15, "<module>", "state = torch.load('c.pt', map_location='cpu')", "torch.load('c.pt', map_location='cpu')");
  told = explained(finding);
  CHECK_THAT(told.root_cause->why, Contains("as `map_location` says"));
}

TEST_CASE("A tensor over an array's memory is to be moved right there") {
  Finding finding = add("y");
  odd(finding).lineage = {created(line(28, "Net.forward", "        y = torch.from_numpy(a)", "torch.from_numpy(a)"))};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.root_cause->why, Contains("memory of the host"));
  CHECK_THAT(told.fix->text, Contains("`torch.from_numpy(a).to(x.device)`"));
}

TEST_CASE("A gradient returned on another device is the cause where it was made") {
  Finding finding = add("");
  finding.op = "autograd::HostSortBackward";
  wanted(finding).device_argument = true;
  wanted(finding).shape.reset();
  odd(finding).arg = "gradients[0]";
  odd(finding).lineage = {created(line(20, "HostSort.backward", "        out = torch.zeros(4)", "torch.zeros(4)"))};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.root_cause->why, Contains("`HostSortBackward` returns begins on the CPU"));
  odd(finding).lineage.clear();
  finding.forward = {line(25, "main", "    y = HostSort.apply(x)")};
  CHECK(cause_line(explained(finding)) == 0);
  CHECK(explained(finding).fix->line == 25);
}

TEST_CASE("A total that begins on the CPU is the cause where it begins") {
  Finding finding = add("loss");
  finding.op = "aten::add_.Tensor";
  Operand& total = wanted(finding);
  total.name = "self.total";
  total.device = "cpu";
  total.shape.emplace();
  total.lineage = {created(line(12, "Mean.__init__", "        self.total = torch.tensor(0.0)", "torch.tensor(0.0)"))};
  odd(finding).device = "cuda:0";
  odd(finding).shape.emplace();
  odd(finding).lineage = {derived(line(29, "Net.forward", "loss = d.sum()"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK(told.root_cause->operand == "self.total");
  CHECK_THAT(told.fix->text, Contains("`torch.tensor(0.0, device='cuda:0')`"));
}

TEST_CASE("A device is named after an operand only where that is known by then") {
  Finding finding = add("y");
  odd(finding).lineage = {created(line(28, "Net.forward", "        y = torch.zeros(4)", "torch.zeros(4)"))};
  CHECK_THAT(explained(finding).fix->text, Contains("`torch.zeros(4, device=x.device)`"));
  wanted(finding).lineage = {derived(line(29, "Net.forward", "        x = x * 2"), "cuda:0")};
  CHECK_THAT(explained(finding).fix->text, Contains("`torch.zeros(4, device='cuda:0')`"));
}

TEST_CASE("Without history or evidence nothing is guessed") {
  const Finding told = explained(add("y"));
  CHECK(cause_line(told) == 0);
  CHECK_THAT(told.fix->text, Contains("`y.to(x.device)`"));
  CHECK(told.rule == "move_where_used");
}

}  // namespace
}  // namespace devsan::report
