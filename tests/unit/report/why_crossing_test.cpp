// Rules about two accelerators, NumPy, and moves that leave something out.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kWeights = line(20, "Model.__init__", "        self.encoder = Encoder().to('cuda:0')");
const Frame kReturn = line(9, "Encoder.forward", "        return self.norm(h)", "self.norm(h)");
const Frame kHanded = line(26, "Model.forward", "        return self.decoder(h)", "self.decoder(h)");

// `h`, from an encoder on cuda:0, meets a weight on cuda:1.
Finding crossing() {
  Finding finding = add("h");
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {derived(kReturn, "cuda:0"), by_module(moved(kWeights, "cuda:0"))};
  wanted(finding).device = "cuda:1";
  wanted(finding).is = NameKind::parameter;
  find(odd(finding), EvidenceKind::crossing_at, kHanded, "h");
  return finding;
}

TEST_CASE("What a module computed on its accelerator is handed over by the line between the two sides") {
  const Finding told = explained(crossing());
  CHECK(told.rule == "crossed_over");
  CHECK(cause_line(told) == 26);
  CHECK_THAT(told.root_cause->why, Contains("model.py:20 put the weights that it is computed with"));

  SECTION("but by the line that moves what is given with it, and not this") {
    Finding finding = crossing();
    find(odd(finding), EvidenceKind::crossing_beside_at, line(25, "Model.forward", "        y = y.to(there)"), "y");
    CHECK(cause_line(explained(finding)) == 25);
    CHECK_THAT(explained(finding).fix->text, Contains("Move `h` here, too, as `y` is"));
  }
  SECTION("not where the other side was put into the model after that was made") {
    Finding finding = crossing();
    find(wanted(finding), EvidenceKind::module_put_at, line(31, "main", "model.decoder = Decoder().to('cuda:1')"),
         "Model.decoder");
    CHECK(cause_line(explained(finding)) != 26);
  }
  SECTION("not where the value was sent to its device by itself") {
    Finding finding = crossing();
    const Frame sent = line(40, "main", "batch = batch.to('cuda:0')", "batch.to('cuda:0')");
    odd(finding).lineage = {moved(sent, "cuda:0")};
    CHECK(cause_line(explained(finding)) == 40);
  }
}

TEST_CASE("What brings its input to its own accelerator has to bring its result back") {
  const Frame returned = line(18, "OnItsGpu.forward", "        return self.inner(x)", "self.inner(x)");
  Finding finding = crossing();
  find(odd(finding), EvidenceKind::returned_at, returned, "x");
  const Finding told = explained(finding);
  CHECK(told.rule == "returned_as_made");
  CHECK(cause_line(told) == 18);
  CHECK_THAT(told.root_cause->why, Contains("brings `x` from cuda:1 to cuda:0"));

  SECTION("also where what it meets looks odd") {
    Finding other = crossing();
    find(wanted(other), EvidenceKind::returned_at, returned, "x");
    wanted(other).is = NameKind::local;
    CHECK(cause_line(explained(other)) == 18);
  }
  SECTION("but not to the host, where models leave their results on the accelerator") {
    wanted(finding).device = "cpu";
    CHECK(explained(finding).rule != "returned_as_made");
  }
}

TEST_CASE("Of two lists that a loop fills, the one that stays on the accelerator is to be brought to the host") {
  const Frame put = line(12, "evaluate", "        scores.append(model(x))", "model(x)");
  Finding finding = add("labels");
  odd(finding).lineage = {moved(line(13, "evaluate", "        labels.append(y.cpu())", "y.cpu()"), "cpu")};
  find(wanted(finding), EvidenceKind::collected_at, put, "scores");
  CHECK(explained(finding).rule != "collected_as_made");
  find(wanted(finding), EvidenceKind::collected_beside_at, line(13, "evaluate", "        labels.append(y.cpu())"),
       "labels");
  const Finding told = explained(finding);
  CHECK(told.rule == "collected_as_made");
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why, Contains("`labels`"));

  SECTION("not where both are on accelerators") {
    odd(finding).device = "cuda:1";
    CHECK(explained(finding).rule != "collected_as_made");
  }
}

TEST_CASE("Of two accelerators, the one that no number was given for is the mistake") {
  Finding finding = crossing();
  odd(finding).evidence.clear();
  wanted(finding).is = NameKind::local;
  wanted(finding).lineage = {
      moved(line(13, "buffers", "    return torch.zeros(n).cuda()", "torch.zeros(n).cuda()"), "cuda:1")};
  const Finding told = explained(finding);
  CHECK(told.rule == "current_device");
  CHECK(cause_line(told) == 13);

  SECTION("where a call tells a helper so") {
    wanted(finding).lineage = {created(
        line(13, "buffers", "    return torch.zeros(n, device=place)", "torch.zeros(n, device=place)"), "cuda:1")};
    find(wanted(finding), EvidenceKind::device_from,
         line(33, "main", "    b = buffers(4, place=\"cuda\")", "buffers(4, place=\"cuda\")"), "place");
    CHECK(explained(finding).rule == "current_device");
    CHECK(cause_line(explained(finding)) == 33);
  }
  SECTION("not where it is a module that went there") {
    wanted(finding).lineage = {by_module(wanted(finding).lineage.front())};
    CHECK(explained(finding).rule != "current_device");
  }
  SECTION("not where neither was given one") {
    odd(finding).lineage = {moved(line(14, "main", "x = x.cuda()", "x.cuda()"), "cuda:0")};
    CHECK(explained(finding).rule != "current_device");
  }
}

Finding for_numpy() {
  Finding finding = add("where");
  finding.message = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.";
  odd(finding).arg = "self";
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {derived(line(28, "Net.forward", "        where = x.argmax(1)"), "cuda:0")};
  wanted(finding).arg = "numpy";
  wanted(finding).device = "cpu";
  wanted(finding).device_argument = true;
  return finding;
}

TEST_CASE("What NumPy is given has to be brought to the host") {
  Finding finding = for_numpy();
  CHECK(explained(finding).rule == "wanted_on_host");
  CHECK(cause_line(explained(finding)) == 30);

  SECTION("by the outermost call that hands it to functions which know no tensors") {
    find(odd(finding), EvidenceKind::given_at,
         line(40, "Replay.update", "tree.update(where, p)", "tree.update(where, p)"), "where");
    find(odd(finding), EvidenceKind::given_at, line(41, "main", "replay.update(i, p)", "replay.update(i, p)"), "i");
    CHECK(cause_line(explained(finding)) == 41);
  }
  SECTION("by the call that brings what it gives beside it") {
    const char* call = "tree.update(where, errors.cpu().numpy())";
    find(odd(finding), EvidenceKind::given_at, line(40, "Replay.update", call, call), "where");
    find(odd(finding), EvidenceKind::given_at, line(41, "main", "replay.update(i, p)", "replay.update(i, p)"), "i");
    const Finding told = explained(finding);
    CHECK(cause_line(told) == 40);
    CHECK_THAT(told.root_cause->why, Contains("brings what it gives beside it"));
  }
}

TEST_CASE("A gradient that is assigned from elsewhere is told by the line that computed it") {
  Finding finding = add("reduced(p)", NameKind::temporary);
  finding.message = "attempting to assign a gradient with device type 'cuda' to a tensor with device type 'cpu'.";
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {derived(line(18, "reduced", "    return p.grad / world", "p.grad / world"), "cuda:0")};
  wanted(finding).device = "cpu";
  const Finding told = explained(finding);
  CHECK(told.rule == "gradient_assigned");
  CHECK(cause_line(told) == 18);

  SECTION("and where that is not known, or autograd did, by the assignment") {
    const LineageStep backward = derived(line(4, "main", "loss.backward()", "loss.backward()"), "cuda:0");
    odd(finding).lineage = {derived({}, "cuda:0"), backward};
    CHECK(cause_line(explained(finding)) == 30);
    odd(finding).lineage.clear();
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("An object's own move that forgets a part is the cause") {
  Finding finding = add("state.code", NameKind::attribute);
  odd(finding).lineage = {created(line(27, "quantize", "    code = torch.linspace(-1, 1, 16, device=w.device)"))};
  find(odd(finding), EvidenceKind::left_by_own_move, line(19, "State.to", "        self.scale = self.scale.to(device)"),
       "State.code");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_by_own_move");
  CHECK(cause_line(told) == 19);
  CHECK_THAT(told.root_cause->why, Contains("nothing in its method moves `code`"));
}

TEST_CASE("The names that a loop moves are the cause for one that is not among them") {
  Finding finding = add("state['third']", NameKind::attribute);
  odd(finding).lineage = {moved(line(12, "offload", "        s[k] = v.cpu()", "v.cpu()"), "cpu")};
  find(odd(finding), EvidenceKind::sibling_moved, line(22, "onload", "        s[k] = s[k].to(dev)"), "['first']");
  find(odd(finding), EvidenceKind::names_listed_at, line(21, "onload", "    for k in ('first', 'second'):"), "third");

  SECTION("of a container") {
    odd(finding).lineage = {created(line(3, "main", "state['third'] = torch.ones(3)", "torch.ones(3)"))};
    const Finding told = explained(finding);
    CHECK(told.rule == "left_out_of_move");
    CHECK(cause_line(told) == 21);
  }
  SECTION("of an optimizer's state") {
    find(odd(finding), EvidenceKind::optimizer_state, line(12, "offload", "        s[k] = v.cpu()"), "third of weight");
    const Finding told = explained(finding);
    CHECK(told.rule == "optimizer_state_elsewhere");
    CHECK(cause_line(told) == 21);
  }
}

TEST_CASE("A parameter of the module itself is left by a move of its children") {
  Finding finding = add("self.scale", NameKind::parameter);
  odd(finding).lineage = {created(line(5, "Net.__init__", "        self.scale = nn.Parameter(torch.ones(3))"))};
  find(odd(finding), EvidenceKind::children_moved_at, line(14, "dispatch", "    for child in model.children():"),
       "Net");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 14);

  SECTION("but not one that was made after that move") {
    odd(finding).lineage = {created(line(16, "dispatch", "    new = torch.randn(2, 4)", "torch.randn(2, 4)"))};
    CHECK(cause_line(explained(finding)) == 16);
  }
}

TEST_CASE("A weight made around modules that were moved before is put right where it is made") {
  Finding finding = add("self.down", NameKind::parameter);
  LineageStep made =
      created(line(7, "Adapted.__init__", "        self.down = nn.Parameter(torch.randn(2, 4))", "torch.randn(2, 4)"));
  made.calls = {line(22, "<module>", "model[1] = Adapted(model[1])")};
  odd(finding).lineage = {made};
  find(odd(finding), EvidenceKind::module_bound_at, line(21, "<module>", "model = nn.Sequential(a, b).to(dev)"),
       "model");
  find(odd(finding), EvidenceKind::weights_elsewhere, {}, "cuda:0 4 of 6 Sequential");
  find(odd(finding), EvidenceKind::children_moved_at, line(21, "<module>", "model = nn.Sequential(a, b).to(dev)"),
       "Adapted");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 7);
  CHECK_THAT(told.fix->text, Contains("`torch.randn(2, 4, device='cuda:0')`"));

  SECTION("and is passed over by the move where it was there by then") {
    odd(finding).lineage[0].calls = {line(20, "<module>", "b = Adapted(layer)")};
    odd(finding).evidence[0].at.source = "model = nn.Sequential(a.to(dev), b)";
    CHECK(cause_line(explained(finding)) == 21);
  }

  SECTION("but not by a move of the whole model, which would have taken it along") {
    odd(finding).lineage[0].calls = {line(20, "<module>", "b = Adapted(layer)")};
    CHECK(cause_line(explained(finding)) == 7);
  }
}

TEST_CASE("What a line makes and puts into a moved model is put right there") {
  Finding finding = add("part.left", NameKind::buffer);
  const Frame put = line(26, "restart", "            part.left = torch.randn(n)", "torch.randn(n)");
  LineageStep made = created(put);
  made.calls = {line(32, "<module>", "restart(critic)")};
  odd(finding).lineage = {made};
  find(odd(finding), EvidenceKind::attribute_set_at, put, "Bounded.left");
  find(odd(finding), EvidenceKind::module_bound_at, line(29, "<module>", "critic = Critic().to(device)"), "critic");
  find(odd(finding), EvidenceKind::weights_elsewhere, {}, "cuda:0 4 of 6 Critic");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 26);
  CHECK_THAT(told.fix->text, Contains("`torch.randn(n, device='cuda:0')`"));

  SECTION("but not where it was made elsewhere") {
    odd(finding).lineage[0].at = line(20, "draw", "    return torch.randn(n)", "torch.randn(n)");
    CHECK(cause_line(explained(finding)) == 32);
  }
}

TEST_CASE("A part that comes into a moved model is put right where it is made") {
  Finding finding = add("self.words.weight", NameKind::parameter);
  LineageStep made = created(line(33, "resize", "    new = nn.Embedding(count, width)", "nn.Embedding(count, width)"));
  made.calls = {line(45, "<module>", "resize(net, 5)")};
  odd(finding).lineage = {made};
  find(odd(finding), EvidenceKind::module_bound_at, line(42, "<module>", "net = Net(3, 8).to(device)"), "net");
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 33);
  CHECK_THAT(told.fix->text, Contains("`nn.Embedding(count, width, device='cuda:0')`"));

  SECTION("and given another device where it says one") {
    odd(finding).lineage[0].at = line(33, "resize", "    new = nn.Embedding(count, width, device=rows.device)",
                                      "nn.Embedding(count, width, device=rows.device)");
    CHECK_THAT(explained(finding).fix->text, Contains("`nn.Embedding(count, width, device='cuda:0')`"));
  }
  SECTION("not where the line that moves the model made it") {
    odd(finding).lineage[0].calls = {line(42, "<module>", "net = Net(3, 8).to(device)")};
    CHECK(cause_line(explained(finding)) == 42);
  }
  SECTION("not where nothing has moved the model") {
    odd(finding).evidence[0].at.source = "net = Net(3, 8)";
    CHECK(cause_line(explained(finding)) == 42);
  }
}

TEST_CASE("Copies that a function returns, and that its caller drops, are told at the call") {
  Finding finding = add("batch['x']", NameKind::attribute);
  odd(finding).lineage = {created(line(2, "main", "x = torch.ones(3)", "torch.ones(3)"))};
  find(odd(finding), EvidenceKind::copied_away,
       line(18, "to_device", "    return {k: v.to(dev) for k, v in b.items()}", "v.to(dev)"), "cuda:0");
  find(odd(finding), EvidenceKind::result_dropped_at, line(21, "step", "    to_device(batch)"), "to_device");
  const Finding told = explained(finding);
  CHECK(told.rule == "to_result_dropped");
  CHECK(cause_line(told) == 21);
}

TEST_CASE("A list of buffers, and an object made of them, keep those from before the move") {
  Finding finding = add("grid");
  odd(finding).lineage = {created(line(3, "Net.__init__", "        grid = torch.arange(3.)", "torch.arange(3.)"))};
  find(odd(finding), EvidenceKind::moved_with_module, kWeights, "cuda:0");

  SECTION("a list") {
    find(odd(finding), EvidenceKind::kept_from_before_move,
         line(6, "Net.__init__", "        self.grids.append(self.grid)"));
    CHECK(explained(finding).rule == "buffer_from_before_move");
    CHECK(cause_line(explained(finding)) == 6);
  }
  SECTION("an object") {
    find(odd(finding), EvidenceKind::held_by_object, {}, "Normal.loc");
    find(odd(finding), EvidenceKind::attribute_set_at,
         line(7, "Prior.__init__", "        self.prior = Normal(self.loc, self.scale)"), "Prior.prior");
    CHECK(explained(finding).rule == "buffer_from_before_move");
    CHECK(cause_line(explained(finding)) == 7);
  }
}

}  // namespace
}  // namespace devsan::report
