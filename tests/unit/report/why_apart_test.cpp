// Modules, weights and lists of which a part is elsewhere: copies for each device, what offloaders put away, what a
// function has left on the accelerator.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kWeight = line(4, "Net.__init__", "        self.fc = nn.Linear(4, 4)", "nn.Linear(4, 4)");

TEST_CASE("A module is used where its owner keeps a copy of it on the device") {
  Finding finding = add("self.fc.weight", NameKind::parameter);
  odd(finding).lineage = {created(kWeight)};
  find(odd(finding), EvidenceKind::module_twin_at, line(27, "loss", "    q = policy.target(x)", "policy.target(x)"),
       "targets");
  const Finding told = explained(finding);
  CHECK(told.rule == "copy_not_taken");
  CHECK(cause_line(told) == 27);
  CHECK(says(told, "has a copy of it on cuda:0, in `targets`"));

  SECTION("not one that was moved itself") {
    odd(finding).lineage = {moved(line(9, "main", "    net.cpu()"), "cpu"), created(kWeight, "cuda:0")};
    CHECK(rule_of(finding) != "copy_not_taken");
  }
}

TEST_CASE("One value is handed on as it is by a function that brings the others to the host") {
  Finding finding = add("corners");
  odd(finding).lineage = {
      created(line(28, "Net.forward", "        corners = torch.tensor(signs)", "torch.tensor(signs)"))};
  const Frame call =
      line(19, "boxes", "    return corners_of(size[i], self.center[i])", "corners_of(size[i], self.center[i])");
  CHECK(cause_line(explained(finding)) == 28);
  find(wanted(finding), EvidenceKind::among_host_work_at, call, "3");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_on_accelerator");
  CHECK(cause_line(told) == 19);

  SECTION("not what meets a weight") {
    odd(finding).is = NameKind::parameter;
    CHECK(rule_of(finding) != "left_on_accelerator");
  }
}

TEST_CASE("One variable is left on the accelerator by a function that brings the others to the host") {
  Finding finding = add("refined");
  const Frame bound = line(28, "Net.forward", "        x = torch.cat(parts)", "torch.cat(parts)");
  odd(finding).lineage = {moved(line(12, "refine", "    return poses.cpu(), joints.cpu()", "joints.cpu()"), "cpu"),
                          created(line(3, "main", "    a = f()"), "cuda:0")};
  wanted(finding).lineage = {derived(bound, "cuda:0"), created(line(3, "main", "    a = f()"), "cuda:0")};
  find(wanted(finding), EvidenceKind::bound_at, bound, "x");
  CHECK(cause_line(explained(finding)) == 12);
  find(odd(finding), EvidenceKind::host_work, {}, "2");
  CHECK(explained(finding).rule == "left_on_accelerator");
  CHECK(cause_line(explained(finding)) == 28);
}

TEST_CASE("Entries of a list that a line of its own makes are to be brought to one device there") {
  Finding finding = add("");
  const char* call = "torch.cat(selected)";
  finding.where = line(30, "Net.forward", std::string("        both = ") + call, call);
  finding.stack = {*finding.where};
  const Frame computed = line(9, "Base.forward", "        states.append(layer(x))", "layer(x)");
  wanted(finding).arg = "tensors[0]";
  wanted(finding).name = "selected[0]";
  wanted(finding).lineage = {derived(computed, "cuda:0")};
  odd(finding).arg = "tensors[1]";
  odd(finding).name = "selected[1]";
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {derived(computed, "cuda:1")};
  CHECK(explained(finding).rule == "gathered_from_devices");
  CHECK(cause_line(explained(finding)) == 30);

  SECTION("by a comprehension") {
    find(odd(finding), EvidenceKind::bound_at, line(29, "Net.forward", "        selected = [states[k] for k in kept]"),
         "selected");
    CHECK(cause_line(explained(finding)) == 29);
  }
  SECTION("by a function that fills it, and hands it back") {
    find(odd(finding), EvidenceKind::gathered_at, line(22, "collect", "        scales.append(m.scale)"), "scales");
    CHECK(cause_line(explained(finding)) == 22);
  }
  SECTION("not by a line that got the list from somewhere else") {
    find(odd(finding), EvidenceKind::bound_at, line(29, "Net.forward", "        selected = base(x)"), "selected");
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("A method that works with offloaded weights has to bring together what it uses") {
  Finding finding = add("weight", NameKind::parameter);
  wanted(finding).is = NameKind::buffer;
  odd(finding).lineage = {
      moved(line(12, "Offload.start", "        t.data = t.data.to(self.temp)", "t.data.to(self.temp)"), "cpu"),
      created(kWeight, "cuda:0")};
  finding.stack = {line(30, "dequantize", "    return x + weight"),
                   line(20, "Int8.unpack", "        return dequantize(self.weight, self.scale)")};
  finding.where = finding.stack.front();
  CHECK(explained(finding).rule == "taken_as_parked");
  CHECK(cause_line(explained(finding)) == 20);

  SECTION("what meets an activation is another matter") {
    wanted(finding).is = NameKind::local;
    CHECK(cause_line(explained(finding)) == 12);
  }
}

TEST_CASE("A weight that went to the host with its module was not taken out by the line that uses it") {
  Finding finding = add("self.bias", NameKind::buffer);
  const Frame moves = line(12, "Worker.__init__", "        self.model = self.model.to('cpu')", "self.model.to('cpu')");
  odd(finding).lineage = {by_module(moved(moves, "cpu")), created(kWeight, "cuda:0")};
  CHECK(explained(finding).rule == "moved_away");
  CHECK(cause_line(explained(finding)) == 12);
}

TEST_CASE("Modules are moved each by a line that names it, and one by none") {
  Finding finding = add("inv");
  odd(finding).lineage = {created(kWeight)};
  const Frame moving = line(18, "Quantizer.prepare", "        self.model.embed = self.model.embed.to(device)");
  find(odd(finding), EvidenceKind::modules_moved_at, moving, "embed");
  find(odd(finding), EvidenceKind::modules_named_at, moving, "rotary");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_off_list");
  CHECK(cause_line(told) == 18);
  CHECK(says(told, "No line moves `rotary`"));
}

TEST_CASE("A module is put into a container that was moved when it was empty") {
  Finding finding = add("self.correct", NameKind::buffer);
  const Frame put = line(22, "Model.compile", "        self.metrics[name] = Accuracy(3)", "Accuracy(3)");
  odd(finding).lineage = {
      called_by(created(line(14, "Accuracy.__init__", "        self.register_buffer('correct', zeros(3))")), {put})};
  find(odd(finding), EvidenceKind::module_bound_at,
       line(16, "Model.__init__", "        self.metrics = nn.ModuleDict().to(device)"), "self.metrics");
  CHECK(explained(finding).rule == "module_not_moved");
  CHECK(cause_line(explained(finding)) == 22);
}

TEST_CASE("A gradient that is sent to the host is for a parameter that should be there") {
  Finding finding = add("reduced");
  finding.message = "attempting to assign a gradient with device type 'cpu' to a tensor with device type 'cuda'";
  finding.where = line(30, "Shard.reduce", "        self.weight.grad = reduced.cpu()");
  finding.stack = {*finding.where};
  wanted(finding).name = "self.weight";
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {moved(line(16, "load", "        full = full.to(device)", "full.to(device)"), "cuda:0"),
                             created(line(3, "main", "    a = f()"))};
  odd(finding).lineage.clear();
  CHECK(explained(finding).rule == "gradient_assigned");
  CHECK(cause_line(explained(finding)) == 16);

  SECTION("one that nobody sent there is the mistake itself") {
    finding.where->source = "        self.weight.grad = reduced";
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("An optimizer's state that a helper restores before the move is told of where the helper is called") {
  Finding finding = add("exp_avg");
  const Frame call = line(18, "Trainer.__init__", "        self.epoch = load_checkpoint(self.optimizer)");
  const Frame load = line(9, "load_checkpoint", "    optimizer.load_state_dict(saved)");
  odd(finding).lineage = {called_by(moved(load, "cpu"), {call}), created(line(3, "main", "    a = f()"), "cuda:0")};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "exp_avg of weight");
  const Frame moves = line(19, "Trainer.__init__", "        self.model.to(device)");
  wanted(finding).lineage = {by_module(moved(moves, "cuda:0")), created(kWeight)};
  CHECK(explained(finding).rule == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 18);

  SECTION("not where the parameters had been moved by then") {
    wanted(finding).lineage.front().at.line = 17;
    CHECK(cause_line(explained(finding)) == 9);
  }
}

TEST_CASE("The line that fails has kept nothing of what was loaded yet") {
  Finding finding = add("mask + bump");
  const Frame keeps = line(19, "Magic.load_state_dict", "        self.state[p]['mask'] = q['values'].float()");
  finding.where = line(30, "Magic.step", "        state['mask'] = torch.where(agree, mask + bump, mask)");
  finding.stack = {*finding.where};
  const Frame added = line(30, "Magic.step", finding.where->source, "mask + bump");
  const Frame load = line(46, "<module>", "opt.load_state_dict(torch.load(file, map_location='cpu'))",
                          "torch.load(file, map_location='cpu')");
  LineageStep loaded = created(load);
  loaded.op = "aten::set_.source_Storage_storage_offset";
  loaded.innermost = line(300, "_rebuild_tensor", "    return t.set_(storage)");
  loaded.innermost.file = "/venv/lib/python3.11/site-packages/torch/_utils.py";
  odd(finding).lineage = {derived(added), derived(keeps), loaded};
  find(odd(finding), EvidenceKind::entry_put_at, *finding.where, "state");
  CHECK(explained(finding).rule == "loaded_elsewhere");
  CHECK(cause_line(explained(finding)) == 19);
}

TEST_CASE("Of two parts that a function makes it tells one the device") {
  Finding finding = add("self.head.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(29, "Policy.build", "        self.head = nn.Linear(4, 2)", "nn.Linear(4, 2)"))};
  find(odd(finding), EvidenceKind::module_bound_at, line(40, "<module>", "policy = Policy(device=dev)"), "policy");
  CHECK(cause_line(explained(finding)) == 40);
  find(wanted(finding), EvidenceKind::device_from,
       line(28, "Policy.build", "        self.body = Body(4, device=self.device)", "Body(4, device=self.device)"),
       "device");
  CHECK(explained(finding).rule == "module_not_moved");
  CHECK(cause_line(explained(finding)) == 29);

  SECTION("not where it is told in another function") {
    wanted(finding).evidence.back().at.function = "Policy.extend";
    CHECK(cause_line(explained(finding)) == 40);
  }
}

TEST_CASE("An optimizer that a method makes above the move is told of where the method is called") {
  Finding finding = add("sum");
  const Frame made = line(21, "Model.configure", "        return Adagrad(self.parameters())");
  odd(finding).lineage = {derived(made), created(kWeight)};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "sum of fc.weight");
  find(odd(finding), EvidenceKind::computed_before_move, made, "model.fc.weight");
  CHECK(cause_line(explained(finding)) == 21);
  find(odd(finding), EvidenceKind::called_before_move_at,
       line(35, "Trainer.fit", "        self.o = [model.configure()]"), "configure");
  CHECK(explained(finding).rule == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 35);
}

TEST_CASE("State that is handed back as it is by a condition is told of there") {
  Finding finding = add("step");
  odd(finding).lineage = {created(line(33, "State.resume", "        saved = torch.load(path)"))};
  find(odd(finding), EvidenceKind::optimizer_state, line(36, "State.resume", "        self.o.state[p] = cast(saved)"),
       "step of weight");
  find(odd(finding), EvidenceKind::sibling_moved, line(30, "State.cast", "        return value.to(param.device)"),
       "['exp_avg']");
  CHECK(cause_line(explained(finding)) == 30);
  find(odd(finding), EvidenceKind::put_as_it_is_at, line(28, "State.cast", "        if key == 'step':"), "['exp_avg']");
  CHECK(explained(finding).rule == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 28);
}

TEST_CASE("State is odd beside a gradient, which is where the parameter is") {
  Finding finding = add("m.grad");
  odd(finding).lineage = {
      moved(line(26, "Zero.step", "        m.grad = p.grad.to(m.device)", "p.grad.to(m.device)"), "cpu"),
      created(line(3, "main", "    a = f()"), "cuda:0")};
  CHECK(cause_line(explained(finding)) == 26);
  wanted(finding).name = "exp_avg of m";
  find(wanted(finding), EvidenceKind::optimizer_state, line(35, "Zero.load", "        self.o.state[m][k] = shard(v)"),
       "exp_avg of m");
  CHECK(explained(finding).rule == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 35);
}

TEST_CASE("A constructor names a GPU for what the model keeps, wherever the model is") {
  Finding finding = add("boxes");
  finding.where->function = finding.stack.front().function = "Decoder.deltas";
  const Frame told = line(18, "Decoder.__init__", "        self.cache = make_coords(4, device='cuda')",
                          "make_coords(4, device='cuda')");
  wanted(finding).lineage = {
      created(line(23, "make_coords", "    return torch.arange(n, device=device)", "torch.arange(n, device=device)"),
              "cuda:0")};
  find(wanted(finding), EvidenceKind::device_from, told, "device");
  LineageStep weight =
      created(line(13, "Decoder.__init__", "        self.points = nn.Embedding(4, 4)", "nn.Embedding(4, 4)"));
  weight.innermost.file = "/venv/lib/python3.11/site-packages/torch/nn/modules/sparse.py";
  odd(finding).lineage = {derived(line(28, "Decoder.forward", "        boxes = self.points.weight.sigmoid()")), weight};
  CHECK(explained(finding).rule == "alone_on_accelerator");
  CHECK(cause_line(explained(finding)) == 18);

  SECTION("not for what another class keeps") {
    wanted(finding).evidence.front().at.function = "Cache.__init__";
    CHECK(cause_line(explained(finding)) != 18);
  }
}

TEST_CASE("Entries of a list that a spread model makes of what came from outside are to be brought over there") {
  Finding finding = add("t");
  finding.where =
      line(30, "Head.forward", "        losses = [fct(lg, t) for lg, t in zip(logits, targets)]", "fct(lg, t)");
  finding.stack = {*finding.where};
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {
      derived(line(28, "Head.forward", "        targets = [p.clamp(0, 3) for p in positions]", "p.clamp(0, 3)"),
              "cuda:1"),
      moved(line(41, "<module>", "net(positions.to('cuda:1'))", "positions.to('cuda:1')"), "cuda:1"),
      created(line(40, "<module>", "positions = torch.ones(4)"))};
  wanted(finding).lineage = {derived(line(27, "Head.forward", "        logits = self.out(x)"), "cuda:0"),
                             created(kWeight, "cuda:0")};
  find(odd(finding), EvidenceKind::model_spread, {}, "Head");
  CHECK(explained(finding).rule == "inside_spread_model");
  CHECK(cause_line(explained(finding)) == 28);
}

// `picked = logits[keep != 0]`
TEST_CASE(
    "What a spread model takes from outside under a name is to be brought over there, also for a temporary of it") {
  Finding finding = add("keep != 0", NameKind::temporary);
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {derived(line(30, "Net.forward", "        picked = logits[keep != 0]", "keep != 0"), "cuda:1"),
                          moved(line(40, "<module>", "mask = mask.to(dev)"), "cuda:1"),
                          created(line(39, "<module>", "mask = torch.ones(4)"))};
  wanted(finding).lineage = {derived(line(27, "Net.forward", "        logits = self.out(x)"), "cuda:0"),
                             created(kWeight, "cuda:0")};
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  find(odd(finding), EvidenceKind::came_through_at, line(29, "Net.forward", "        keep = mask[..., 1:]"), "keep");
  CHECK(explained(finding).rule == "inside_spread_model");
  CHECK(cause_line(explained(finding)) == 29);

  SECTION("not where another function gave it the name") {
    odd(finding).evidence.back().at.function = "Other.forward";
    CHECK(cause_line(explained(finding)) == 30);
  }
}

}  // namespace
}  // namespace devsan::report
