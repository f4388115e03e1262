// Rules that decide which of two lines is to change, where either of them could be: what a function takes beside what
// it brings over, what it makes beside what it is given, what all turns of a loop share, what an attribute began with.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

// `data = weight.data.to(dev)` in line 20 of a function that calls the failing one, and `state.scales = weight.scales`.
Finding taken_beside_a_move() {
  Finding finding = add("scales");
  const Frame moves = line(20, "dequantize", "    data = weight.data.to(dev)", "weight.data.to(dev)");
  wanted(finding).lineage = {moved(moves, "cuda:0")};
  odd(finding).lineage = {created(line(5, "quantize", "    scales = rows.amax(1)"))};
  find(odd(finding), EvidenceKind::came_through_at, line(22, "dequantize", "    state.scales = weight.scales"),
       "state.scales");
  finding.stack.push_back(line(23, "dequantize", "    return rescale(data, state.scales)"));
  return finding;
}

TEST_CASE("What a function takes as it is, beside what it brings over, is to be brought over in that line") {
  Finding finding = taken_beside_a_move();
  Finding told = explained(finding);
  CHECK(told.rule == "moved_beside");
  CHECK(cause_line(told) == 22);
  CHECK(says(told, "takes `state.scales` as it is, on the CPU. model.py:20 brings"));
  CHECK_THAT(told.fix->text, Contains("`state.scales = weight.scales.to('cuda:0')`"));

  SECTION("not once the function has returned") {
    finding.stack.pop_back();
    CHECK(cause_line(explained(finding)) != 22);
  }
  SECTION("not where the line computes something") {
    odd(finding).evidence.back().at.source = "    state.scales = rescale(weight.scales)";
    CHECK(cause_line(explained(finding)) != 22);
  }
  SECTION("not in another function, nor in a script") {
    odd(finding).evidence.back().at.function = "prepare";
    CHECK(cause_line(explained(finding)) != 22);
    odd(finding).evidence.back().at.function = wanted(finding).lineage.front().at.function = "<module>";
    finding.stack.back().function = "<module>";
    CHECK(cause_line(explained(finding)) != 22);
  }
}

// `span = torch.arange(n, device=device)` in the failing function, which is given `positions` and `device`.
Finding made_beside_an_argument() {
  Finding finding = between_gpus("positions");
  const char* call = "torch.arange(n, device=device)";
  wanted(finding).lineage = {
      created(line(28, "Net.forward", "        x = torch.arange(n, device=device)", call), "cuda:0")};
  odd(finding).lineage = {moved(line(9, "<module>", "rows = rows.to('cuda:1')"), "cuda:1")};
  find(odd(finding), EvidenceKind::model_spread, Frame(), "Body");
  find(odd(finding), EvidenceKind::told_beside_at, line(26, "Net.forward", "    def forward(self, positions, device):"),
       "device");
  find(odd(finding), EvidenceKind::given_at, line(40, "main", "    net(positions, dev)"), "positions");
  return finding;
}

TEST_CASE("What a function makes on a device that it is told follows what it is given") {
  Finding finding = made_beside_an_argument();
  const Finding told = explained(finding);
  CHECK(told.rule == "crossed_over");
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.fix->text, Contains("`torch.arange(n, device=positions.device)`"));

  SECTION("not where it follows something else already") {
    wanted(finding).lineage.front().at =
        line(28, "Net.forward", "        x = torch.arange(n, device=ids.device)", "torch.arange(n, device=ids.device)");
    CHECK(cause_line(explained(finding)) != 28);
  }
  SECTION("not where another function makes it") {
    wanted(finding).lineage.front().at.function = "spans";
    CHECK(cause_line(explained(finding)) != 28);
  }
}

TEST_CASE("What is made for all turns of a loop over the parts of a model goes to where each entry is") {
  Finding finding = between_gpus("activation");
  wanted(finding).text = "x";
  wanted(finding).lineage = {
      created(line(25, "Net.forward", "        x = torch.arange(n, device=ids.device)"), "cuda:0")};
  odd(finding).lineage = {derived(line(12, "Body.forward", "        h = layer(h.to(layer.weight.device))"), "cuda:1"),
                          by_module(moved(line(8, "<module>", "layer.to('cuda:1')"), "cuda:1"))};
  find(odd(finding), EvidenceKind::model_spread, Frame(), "Body");
  find(odd(finding), EvidenceKind::bound_at, line(29, "Net.forward", "        for k, activation in record.items():"),
       "activation");
  const Finding told = explained(finding);
  CHECK(told.rule == "crossed_over");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("`x.to(activation.device)`"));

  SECTION("not what the loop makes for each") {
    wanted(finding).lineage.front().at.line = 30;
    CHECK(!says(explained(finding), "made for all of them"));
  }
}

// `self.state = torch.zeros(0)` in line 8 of a module's constructor, and `self.state = torch.zeros_like(self.state)`.
Finding made_of_what_it_was() {
  Finding finding = add("self.state", NameKind::attribute);
  const Frame again =
      line(14, "Cell.reset", "        self.state = torch.zeros_like(self.state)", "torch.zeros_like(self.state)");
  odd(finding).lineage = {derived(again), created(line(8, "Cell.__init__", "        self.state = torch.zeros(0)"))};
  find(odd(finding), EvidenceKind::held_by_module, Frame(), "Cell.state");
  find(odd(finding), EvidenceKind::holder_moved_at, line(50, "<module>", "net.to('cuda:0')"), "cuda:0");
  find(odd(finding), EvidenceKind::attribute_set_at, again, "Cell.state");
  find(odd(finding), EvidenceKind::attribute_begun_at, line(8, "Cell.__init__", "        self.state = torch.zeros(0)"),
       "Cell.state");
  return finding;
}

TEST_CASE("An attribute of which every later value is made of the one before is told of where it began") {
  Finding finding = made_of_what_it_was();
  const Finding told = explained(finding);
  CHECK(told.rule == "attribute_not_buffer");
  CHECK(cause_line(told) == 8);
  CHECK_THAT(told.fix->text, Contains("register_buffer('state', torch.zeros(0)"));

  SECTION("not where the failing function began it") {
    odd(finding).evidence.back().at.function = "Net.forward";
    CHECK(cause_line(explained(finding)) != 8);
  }
}

// `costs = torch.zeros(n)` in line 12, below `torch.set_default_device("cuda")`, for NumPy.
Finding made_for_arrays() {
  Finding finding = add("costs");
  finding.message =
      "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory";
  finding.operands.erase(finding.operands.begin());
  Operand& costs = finding.operands.front();
  costs.device = "cuda:0";
  costs.lineage = {created(line(12, "Loss.forward", "        costs = torch.zeros(n)", "torch.zeros(n)"), "cuda:0")};
  find(costs, EvidenceKind::default_device_at, line(3, "<module>", "torch.set_default_device('cuda')"));
  return finding;
}

TEST_CASE("What a line makes without a device below a default device, for NumPy, is to be made on the host") {
  Finding finding = made_for_arrays();
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.fix->text, Contains("`torch.zeros(n, device='cpu')`"));

  SECTION("not where something was computed of it") {
    Operand& costs = finding.operands.front();
    costs.lineage.insert(costs.lineage.begin(),
                         derived(line(14, "Loss.forward", "        costs = costs + x"), "cuda:0"));
    CHECK(cause_line(explained(finding)) != 12);
  }
  SECTION("in a hook of a backward, it is none of the gradients that are returned") {
    finding.op = "autograd::BackwardHookFunctionBackward";
    Operand array;
    array.device = "cpu";
    array.device_argument = true;
    finding.operands.push_back(array);
    CHECK(rule_of(finding) == "wanted_on_host");
  }
  SECTION("not where it names its device") {
    finding.operands.front().lineage.front().at =
        line(12, "Loss.forward", "        costs = torch.zeros(n, device=dev)", "torch.zeros(n, device=dev)");
    CHECK(cause_line(explained(finding)) != 12);
  }
}

// `targets = torch.tensor(values)` in a thread of its own; `x` on cuda:0 by the default device of the main one.
Finding made_in_a_thread() {
  Finding finding = add("targets");
  finding.pid = 7;
  finding.thread = 9;
  const Frame call = line(28, "Net.forward", "        targets = as_tensor(values)", "as_tensor(values)");
  odd(finding).lineage = {
      called_by(created(line(5, "as_tensor", "    return torch.tensor(values)", "torch.tensor(values)")), {call})};
  wanted(finding).lineage = {
      created(line(12, "Net.__init__", "        self.scale = torch.ones(4)", "torch.ones(4)"), "cuda:0")};
  find(wanted(finding), EvidenceKind::default_device_at,
       line(11, "Net.__init__", "        torch.set_default_device('cuda')"));
  return finding;
}

TEST_CASE("A default device that another thread has set is none for what a thread makes") {
  Finding finding = made_in_a_thread();
  const Finding told = explained(finding);
  CHECK(told.rule == "default_device_set");
  CHECK(cause_line(told) == 5);
  CHECK(says(told, "`targets` is made here without a device, and not in the main thread."));

  SECTION("where the main thread fails, the line that sets it is told") {
    finding.thread = 7;
    CHECK(cause_line(explained(finding)) == 11);
  }
}

TEST_CASE("Numbers drawn to go with what was left on the host lead to the line that left it") {
  Finding finding = add("generator");
  finding.where = line(30, "Net.forward", "        noise = torch.randn(n, generator=generator, device=image.device)",
                       "torch.randn(n, generator=generator, device=image.device)");
  finding.stack = {*finding.where};
  odd(finding).generator = true;
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cpu";
  wanted(finding).name = "";
  wanted(finding).device_argument = true;
  find(odd(finding), EvidenceKind::generator_made_at, line(60, "<module>", "gen = torch.Generator('cuda')"));
  find(odd(finding), EvidenceKind::device_asked_of_at,
       line(28, "Net.forward", "        image = self.preprocess(frame)", "self.preprocess(frame)"), "image");
  const Finding told = explained(finding);
  CHECK(told.rule == "generator_elsewhere");
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.fix->text, Contains("`image = self.preprocess(frame).to(generator.device)`"));

  SECTION("not where the generator is the one on the host") {
    odd(finding).device = "cpu";
    wanted(finding).device = "cuda:0";
    CHECK(cause_line(explained(finding)) == 60);
  }
}

// `self.flat = torch.zeros(n, device="cpu" if offload else dev)` in line 9 of a constructor, and `x` of line 8 on
// cuda:0.
Finding made_beside_a_choice() {
  Finding finding = add("bad");
  const Frame chosen = line(9, "Net.__init__", "        self.flat = torch.zeros(n, device='cpu' if offload else dev)",
                            "torch.zeros(n, device='cpu' if offload else dev)");
  odd(finding).lineage = {derived(line(29, "Net.forward", "        bad = self.flat.isinf().any()")), created(chosen)};
  wanted(finding).lineage = {created(
      line(8, "Net.__init__", "        self.x = torch.zeros(1, device=dev)", "torch.zeros(1, device=dev)"), "cuda:0")};
  return finding;
}

TEST_CASE("Of two tensors that an object makes, one that does not ask for a setting is to follow the one that does") {
  Finding finding = made_beside_a_choice();
  const Finding told = explained(finding);
  CHECK(told.rule == "fixed_beside_choice");
  CHECK(cause_line(told) == 8);
  CHECK_THAT(told.fix->text, Contains("`torch.zeros(1, device='cpu' if offload else dev)`"));

  SECTION("also where the device was chosen before") {
    odd(finding).lineage.back().at = line(9, "Net.__init__", "        self.flat = torch.zeros(n, device=self.where)",
                                          "torch.zeros(n, device=self.where)");
    find(odd(finding), EvidenceKind::device_from,
         line(7, "Net.__init__", "        self.where = 'cpu' if offload else dev"), "self.where");
    CHECK(cause_line(explained(finding)) == 8);
  }
  SECTION("not where no setting chooses, or both ask for it") {
    Frame& chosen = odd(finding).lineage.back().at;
    Frame& fixed = wanted(finding).lineage.back().at;
    fixed = chosen;
    fixed.line = fixed.end_line = 8;
    CHECK(rule_of(finding) != "fixed_beside_choice");
    chosen = line(9, "Net.__init__", "        self.flat = torch.zeros(n)", "torch.zeros(n)");
    CHECK(rule_of(finding) != "fixed_beside_choice");
  }
  SECTION("not where another object makes it") {
    wanted(finding).lineage.back().at.function = "Other.__init__";
    CHECK(rule_of(finding) != "fixed_beside_choice");
  }
}

// A weight that `with on_device(vae):` in line 40 has brought over and taken back, used in line 42 of the same
// function.
Finding used_behind_its_block() {
  Finding finding = add("self.weight", NameKind::parameter);
  const Frame block = line(40, "main", "    with on_device(vae):", "on_device(vae)");
  odd(finding).lineage = {called_by(moved(line(25, "on_device", "        vae.to(home)"), "cpu"), {block}),
                          called_by(moved(line(19, "on_device", "        vae.to(dev)"), "cuda:0"), {block}),
                          created(line(5, "Vae.__init__", "        self.weight = nn.Parameter(torch.ones(4))"))};
  finding.stack.push_back(line(42, "main", "    latents = vae(pixels)"));
  return finding;
}

TEST_CASE("What a `with` statement brings over for its block is not to be used behind that") {
  Finding finding = used_behind_its_block();
  const Finding told = explained(finding);
  CHECK(told.rule == "used_behind_block");
  CHECK(cause_line(told) == 42);
  CHECK(says(told, "The `with` statement in model.py:40 brings `self.weight` to cuda:0 for its block"));

  SECTION("also by a class with `__enter__` and `__exit__`") {
    odd(finding).lineage[0].at.function = "OnDevice.__exit__";
    odd(finding).lineage[1].at.function = "OnDevice.__enter__";
    CHECK(cause_line(explained(finding)) == 42);
  }
  SECTION("not where two calls did, or no `with` statement") {
    odd(finding).lineage[1].calls.front().line = 38;
    CHECK(rule_of(finding) != "used_behind_block");
    finding = used_behind_its_block();
    odd(finding).lineage[0].calls.front().source = odd(finding).lineage[1].calls.front().source = "    swap(vae)";
    CHECK(rule_of(finding) != "used_behind_block");
  }
  SECTION("not within the block of another function") {
    finding.stack.back().function = "other";
    CHECK(rule_of(finding) != "used_behind_block");
  }
}

// `new = FIXERS[type(old)](old)` in line 25, where line 15 returns `nn.GroupNorm(2, 4)`; the model is on cuda:0.
Finding made_for_a_moved_model() {
  Finding finding = add("self.norm.weight", NameKind::parameter);
  const Frame made = line(15, "to_group_norm", "    return nn.GroupNorm(2, 4)", "nn.GroupNorm(2, 4)");
  const Frame asked = line(25, "fix", "            new = FIXERS[type(old)](old)", "FIXERS[type(old)](old)");
  odd(finding).lineage = {called_by(created(made), {asked, line(42, "<module>", "private = fix(net)")})};
  find(odd(finding), EvidenceKind::weights_elsewhere, Frame(), "cuda:0 4 of 6 Net");
  find(odd(finding), EvidenceKind::made_unaware_at, made, "to_group_norm");
  return finding;
}

TEST_CASE("A part that a helper makes for a model which has moved is to be moved by the line that asks for it") {
  Finding finding = made_for_a_moved_model();
  const Finding told = explained(finding);
  CHECK(told.rule == "part_made_apart");
  CHECK(cause_line(told) == 25);
  CHECK_THAT(told.fix->text, Contains("`new = FIXERS[type(old)](old).to('cuda:0')`"));

  SECTION("not where the rest of the model is on the CPU, too") {
    odd(finding).evidence.front().text = "cuda:1 1 of 6 Net";
    CHECK(rule_of(finding) != "part_made_apart");
  }
  SECTION("not where the constructor of the model asks for it") {
    odd(finding).lineage.front().calls.front().function = "Net.__init__";
    CHECK(rule_of(finding) != "part_made_apart");
  }
}

// `x` was on the CPU, and line 34 moves it to `storing_device`; it is put into rows that are told `device="cpu"`.
Finding put_after_leaving() {
  Finding finding = add("self.rows", NameKind::attribute);
  finding.op = "aten::index_put_";
  odd(finding).arg = "self";
  wanted(finding).arg = "values";
  odd(finding).lineage = {created(line(16, "Buffer.__init__", "        self.rows = torch.zeros(n, device=device)"))};
  find(odd(finding), EvidenceKind::device_from, line(42, "<module>", "buffer = Buffer(16, device='cpu')"), "device");
  wanted(finding).lineage = {moved(line(34, "rollout", "    return x.to(storing_device)"), "cuda:0"),
                             created(line(32, "rollout", "    x = torch.ones(4)"))};
  find(wanted(finding), EvidenceKind::device_from, line(37, "<module>", "collector = Collector(storing_device='cuda')"),
       "storing_device");
  return finding;
}

TEST_CASE("What a setting moves away from where it is put in the end leads to that setting") {
  Finding finding = put_after_leaving();
  const Finding told = explained(finding);
  CHECK(told.rule == "told_to_leave");
  CHECK(cause_line(told) == 37);
  CHECK(says(told, "`x` was on the CPU before, and model.py:34 moves it to cuda:0 because of `storing_device`"));

  SECTION("not where nobody was told where to keep it") {
    odd(finding).evidence.clear();
    CHECK(rule_of(finding) != "told_to_leave");
  }
  SECTION("not where the operator only reads it") {
    finding.op = "aten::add.Tensor";
    CHECK(rule_of(finding) != "told_to_leave");
  }
}

TEST_CASE("A function that converts one by one, and hands tensors back, is to move those, too") {
  Finding finding = add("boxes");
  odd(finding).lineage = {created(line(5, "detect", "    boxes = torch.rand(3, 4)"))};
  find(
      odd(finding), EvidenceKind::passed_over_at,
      line(17, "Backend.convert", "        return torch.tensor(x).to(self.device) if isinstance(x, np.ndarray) else x"),
      "Tensor");
  const Finding told = explained(finding);
  CHECK(told.rule == "handed_back_unmoved");
  CHECK(cause_line(told) == 17);
  CHECK(says(told, "hands a `Tensor` back as it came: `boxes` stays on the CPU"));
}

}  // namespace
}  // namespace devsan::report
