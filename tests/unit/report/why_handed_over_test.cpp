// Rules about values that are right where they are until they are handed to what lies elsewhere, or stay when that
// moves.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kBuffer = line(3, "Net.__init__", "        self.register_buffer('table', torch.zeros(4))");
const Frame kComputed = line(4, "Net.__init__", "        self.kept = [self.table.mean()]", "self.table.mean()");
const Frame kModuleMove = line(20, "main", "    net = Net().to(device)", "Net().to(device)");

TEST_CASE("What was computed from a buffer before its module moved stays") {
  Finding finding = add("mean");
  odd(finding).lineage = {derived(kComputed), created(kBuffer)};
  find(odd(finding), EvidenceKind::computed_before_move, kComputed, "net.table");
  find(odd(finding), EvidenceKind::source_moved_at, kModuleMove, "cuda:0");
  const Finding told = explained(finding);
  CHECK(told.rule == "computed_before_move");
  CHECK(cause_line(told) == 4);
  CHECK_THAT(told.root_cause->why, Contains("from `net.table`") && Contains("model.py:20 moves it to cuda:0 later"));

  SECTION("not where the function that computes it is the one that fails") {
    odd(finding).evidence.clear();
    find(odd(finding), EvidenceKind::computed_before_move, line(28, "Net.forward", "        mean = self.table.mean()"),
         "net.table");
    find(odd(finding), EvidenceKind::source_moved_at, kModuleMove, "cuda:0");
    CHECK(explained(finding).rule != "computed_before_move");
  }
}

TEST_CASE("What another function computed before the move is put right where an attribute keeps it") {
  Finding finding = add("net.full", NameKind::attribute);
  const Frame computed = line(5, "product", "    return left @ right");
  const Frame kept = line(13, "Net.__init__", "        self.full = product(self.left.data, self.right.data)");
  odd(finding).lineage = {derived(computed), created(kBuffer)};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.full");
  find(odd(finding), EvidenceKind::attribute_set_at, line(19, "Model.__init__", "        self.net = Net()"),
       "Model.net");
  find(odd(finding), EvidenceKind::declared_at, kept, "Net.full");
  find(odd(finding), EvidenceKind::computed_before_move, computed, "net.left");
  find(odd(finding), EvidenceKind::source_moved_at, kModuleMove, "cuda:0");
  const Finding told = explained(finding);
  CHECK(told.rule == "computed_before_move");
  CHECK(cause_line(told) == 13);
  CHECK_THAT(told.root_cause->why,
             Contains("plain attribute of the module `Net`, computed in model.py:5 from `net.left`"));
  CHECK_THAT(told.fix->text, Contains("self.register_buffer('full', product("));

  SECTION("where it is computed, if that is the function which stores it") {
    odd(finding).evidence[2].at.function = "product";
    CHECK(cause_line(explained(finding)) == 5);
  }
  SECTION("as an attribute that is no buffer where no weight is known to have moved") {
    odd(finding).evidence.resize(3);
    odd(finding).lineage.back().at = line(4, "product", "    left = torch.ones(3)", "torch.ones(3)");
    CHECK(explained(finding).rule == "attribute_not_buffer");
    CHECK(cause_line(explained(finding)) == 13);
  }
}

TEST_CASE("What a helper made in an earlier call is put right where an attribute keeps it") {
  Finding finding = add("self.near", NameKind::attribute);
  odd(finding).lineage = {derived(line(22, "Net.weigh", "        return (-apart).exp()")),
                          created(line(21, "Net.weigh", "        apart = torch.zeros(n, device=points.device)",
                                       "torch.zeros(n, device=points.device)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.near");
  CHECK(cause_line(explained(finding)) == 22);
  find(odd(finding), EvidenceKind::attribute_set_at, line(27, "Net.forward", "            self.near = self.weigh(p)"),
       "Net.near");
  find(odd(finding), EvidenceKind::declared_at, line(18, "Net.__init__", "        self.near = None"), "Net.near");
  const Finding told = explained(finding);
  CHECK(told.rule == "kept_from_first_call");
  CHECK(cause_line(told) == 27);
  CHECK_THAT(told.root_cause->why,
             Contains("was made in model.py:22 in an earlier call, on the CPU, and kept in this"));

  SECTION("not where the constructor keeps it") {
    odd(finding).evidence[1].at = line(18, "Net.__init__", "        self.near = self.weigh(points)");
    CHECK(explained(finding).rule == "attribute_not_buffer");
    CHECK(cause_line(explained(finding)) == 18);
  }
}

TEST_CASE("A default device that a function sets for all of the program is the cause where two factories disagree") {
  const Frame made = line(12, "shuffle", "    return torch.randperm(n)", "torch.randperm(n)");
  const Frame before = line(2, "Table.__init__", "        self.rows = torch.arange(9)", "torch.arange(9)");
  Finding finding = add("rows");
  odd(finding).lineage = {created(before)};
  wanted(finding).lineage = {created(made, "cuda:0")};
  find(wanted(finding), EvidenceKind::default_device_at, line(7, "build", "    torch.set_default_device('cuda')"));
  const Finding told = explained(finding);
  CHECK(told.rule == "default_device_set");
  CHECK(cause_line(told) == 7);

  SECTION("not where the script begins with it") {
    wanted(finding).evidence.clear();
    find(wanted(finding), EvidenceKind::default_device_at, line(7, "main", "    torch.set_default_device('cuda')"));
    CHECK(explained(finding).rule != "default_device_set");
  }
  SECTION("not where the other factory was told its device") {
    odd(finding).lineage = {created(line(2, "Table.__init__", "        self.rows = torch.arange(9, device='cpu')",
                                         "torch.arange(9, device='cpu')"))};
    CHECK(explained(finding).rule != "default_device_set");
  }
}

TEST_CASE("A weight that two modules share goes where the last of them is moved") {
  const Frame head = line(9, "spread", "    model.head.to(last)", "model.head.to(last)");
  const Frame embed = line(8, "spread", "    model.embed.to(first)", "model.embed.to(first)");
  Finding finding = add("tokens");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {moved(line(25, "main", "    tokens = tokens.to(first)"), "cuda:1")};
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {moved(head, "cuda:0"), moved(embed, "cuda:1"),
                             created(line(3, "Net.__init__", "        self.embed = nn.Embedding(9, 4)"))};
  find(wanted(finding), EvidenceKind::tied_to, {}, "model.head.weight");
  const Finding told = explained(finding);
  CHECK(told.rule == "tied_weight");
  CHECK(cause_line(told) == 9);
  CHECK_THAT(told.root_cause->why, Contains("moves `model.head.weight` to cuda:0"));

  SECTION("not for what was left on the CPU where all of the model was moved, as parametrized weights are tied") {
    odd(finding).device = "cpu";
    odd(finding).lineage = {created(line(12, "Adapter.__init__", "        self.up = torch.zeros(4)"))};
    wanted(finding).lineage.erase(wanted(finding).lineage.begin() + 1);
    CHECK(explained(finding).rule != "tied_weight");
    find(wanted(finding), EvidenceKind::weights_elsewhere, {}, "cpu 5 of 6 Net");
    CHECK(explained(finding).rule == "tied_weight");
  }
  SECTION("not where it never was on the other device") {
    wanted(finding).lineage.erase(wanted(finding).lineage.begin() + 1);
    CHECK(explained(finding).rule != "tied_weight");
  }
}

TEST_CASE("An entry that comes from elsewhere is put beside tensors on an accelerator") {
  const Frame put = line(14, "Buffer.sample", "        batch['weights'] = weights");
  Finding finding = add("batch['weights']");
  odd(finding).lineage = {created(line(5, "Sampler.draw", "        weights = torch.ones(n)", "torch.ones(n)"))};
  find(odd(finding), EvidenceKind::entry_put_at, put, "batch");
  find(odd(finding), EvidenceKind::entries_elsewhere, {}, "cuda:0 5 of 6");
  const Finding told = explained(finding);
  CHECK(told.rule == "put_beside_others");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("5 of 6 are on cuda:0"));
  CHECK_THAT(told.fix->text, Contains("batch['weights'] = weights.to('cuda:0')"));

  SECTION("not where the function that puts it there has made it") {
    odd(finding).lineage = {created(line(13, "Buffer.sample", "        weights = torch.ones(n)", "torch.ones(n)"))};
    CHECK(cause_line(explained(finding)) == 13);
  }
}

TEST_CASE("Who takes out what was sent to the host to be kept has to bring it back") {
  const Frame parked = line(6, "Store.add", "        self.items.append(x.detach().cpu())", "x.detach().cpu()");
  const Frame taken = line(11, "Store.all", "        return torch.stack(self.items)", "torch.stack(self.items)");
  Finding finding = add("items");
  odd(finding).lineage = {derived(taken), moved(parked, "cpu"), created(kBuffer, "cuda:0")};
  CHECK(explained(finding).rule == "taken_as_parked");
  CHECK(cause_line(explained(finding)) == 11);

  SECTION("by the line that brings back what was parked with it") {
    odd(finding).lineage.erase(odd(finding).lineage.begin());
    find(odd(finding), EvidenceKind::given_at, line(24, "main", "    net(store.get())", "net(store.get())"), "x");
    find(odd(finding), EvidenceKind::sibling_moved,
         line(15, "recall", "    parts = [t.to(dev) if t.is_floating_point() else t for t in kept]"), "[0]");
    const Finding told = explained(finding);
    CHECK(cause_line(told) == 15);
    CHECK_THAT(told.root_cause->why, Contains("`[0]`, which was kept with it, is brought back here"));
    CHECK_THAT(told.fix->text, Contains("Bring it back to cuda:0 in this line."));  // a list has no `.to()`
  }
  SECTION("by the outermost of the calls that give it") {
    odd(finding).lineage.erase(odd(finding).lineage.begin());
    find(odd(finding), EvidenceKind::given_at, line(22, "step", "    net(x)", "net(x)"), "x");
    find(odd(finding), EvidenceKind::given_at, line(24, "main", "    step(store.get())", "step(store.get())"), "x");
    CHECK(cause_line(explained(finding)) == 24);
  }
  SECTION("not where the line that sends it does not keep it") {
    const Frame sent = line(6, "Store.add", "        total = x.detach().cpu()", "x.detach().cpu()");
    odd(finding).lineage = {derived(taken), moved(sent, "cpu"), created(kBuffer, "cuda:0")};
    CHECK(explained(finding).rule == "moved_away");
    CHECK(cause_line(explained(finding)) == 6);
  }
}

TEST_CASE("An argument that is read on the host is the odd one though all are on one device") {
  Finding finding = add("lengths");
  finding.message = "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor";
  odd(finding).arg = "lengths";
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {derived(line(9, "lengths_of", "    return mask.sum(1)", "mask.sum(1)"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains(".cpu()"));

  SECTION("by the line that computed it in the same function, or for the failing line alone") {
    odd(finding).is = NameKind::temporary;
    CHECK(cause_line(explained(finding)) == 9);
    odd(finding).is = NameKind::local;
    odd(finding).lineage = {derived(line(28, "Net.forward", "        lengths = mask.sum(1)", "mask.sum(1)"), "cuda:0")};
    CHECK(cause_line(explained(finding)) == 28);
  }
}

TEST_CASE("The call that gives the old name though a moved copy exists is the cause") {
  Finding finding = add("mask");
  odd(finding).lineage = {created(line(10, "main", "    mask = torch.ones(4)", "torch.ones(4)"))};
  find(odd(finding), EvidenceKind::copied_away, line(12, "main", "    mask_there = mask.to(device)", "mask.to(device)"),
       "cuda:0");
  find(odd(finding), EvidenceKind::given_at, line(28, "step", "    return net(x, m)", "net(x, m)"), "m");
  find(odd(finding), EvidenceKind::given_at, line(16, "main", "    step(x, mask)", "step(x, mask)"), "mask");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_behind");
  CHECK(cause_line(told) == 16);
  CHECK_THAT(told.fix->text, Contains("Give `mask_there` instead of `mask`"));
}

TEST_CASE("A call that moves one argument and gives another as it is is the cause") {
  Finding finding = add("weights");
  odd(finding).lineage = {created(line(4, "main", "    weights = torch.ones(4)", "torch.ones(4)"))};
  const Frame call =
      line(17, "main", "    loss = criterion(out, y.to(dev), weights)", "criterion(out, y.to(dev), weights)");
  find(odd(finding), EvidenceKind::given_at, call, "weights");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_out_of_move");
  CHECK(cause_line(told) == 17);
  CHECK_THAT(told.root_cause->why, Contains("`weights` as it is") && Contains("`y.to(dev)`, which it moves"));

  SECTION("not where it moves none") {
    odd(finding).evidence.clear();
    find(odd(finding), EvidenceKind::given_at,
         line(17, "main", "    loss = criterion(out, y, weights)", "criterion(out, y, weights)"), "weights");
    CHECK(cause_line(explained(finding)) == 4);
  }
}

TEST_CASE("A branch for lists is the line to change where a tuple was handed back as it came") {
  Finding finding = add("boxes");
  odd(finding).lineage = {created(line(2, "collate", "    boxes = torch.rand(4, 4)", "torch.rand(4, 4)"))};
  find(odd(finding), EvidenceKind::sibling_moved, line(10, "send", "        return v.to(device)"), "[0]");
  find(odd(finding), EvidenceKind::passed_over_at, line(14, "send", "    return v"), "tuple");
  CHECK(cause_line(explained(finding)) == 14);
  find(odd(finding), EvidenceKind::branch_beside, line(12, "send", "    if isinstance(v, list):"), "list");
  CHECK(cause_line(explained(finding)) == 12);
  CHECK_THAT(explained(finding).fix->text, Contains("take a `tuple`, too"));
}

TEST_CASE("The line that brings parameters back without the optimizer's state is the cause") {
  const Frame away = line(5, "offload", "            state[key] = value.to('cpu')", "value.to('cpu')");
  const Frame model_away = line(8, "sleep", "    model.to('cpu')", "model.to('cpu')");
  const Frame model_back = line(11, "wake", "    model.to(device)", "model.to(device)");
  Finding finding = add("exp_avg of layer.weight");
  odd(finding).lineage = {
      moved(away, "cpu"),           derived(library_line(90, "step", "state = zeros_like(p)"), "cuda:0"),
      moved(model_back, "cuda:0"),  moved(model_away, "cpu"),
      moved(kModuleMove, "cuda:0"), created(kBuffer)};
  find(odd(finding), EvidenceKind::optimizer_state, away, "exp_avg of layer.weight");
  const Finding told = explained(finding);
  CHECK(told.rule == "optimizer_state_elsewhere");
  CHECK(cause_line(told) == 11);
}

}  // namespace
}  // namespace devsan::report
