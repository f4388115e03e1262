// Who could have moved a value on its way and did not: a mover that passes it over, a loop that draws a batch, a
// condition that keeps state away, a device that is taken from another value.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A function that moves things has handed it back by a condition") {
  Finding finding = add("image");
  odd(finding).lineage = {created(line(3, "<module>", "data = [torch.rand(3)]"))};
  find(odd(finding), EvidenceKind::bound_at, line(34, "Runner.train", "    data = self.to_cuda(data)"), "data");
  find(odd(finding), EvidenceKind::left_by_mover_at,
       line(27, "Runner.to_cuda", "            if not isinstance(k, torch.Tensor):"), "self.to_cuda");
  CHECK(rule_of(finding) == "handed_back_unmoved");
  CHECK(cause_line(explained(finding)) == 27);
  CHECK(says(explained(finding), "this condition keeps it from being moved"));

  SECTION("not what somebody has moved since") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(5, "f", "    x = x.cpu()"), "cpu"));
    CHECK(rule_of(finding) != "handed_back_unmoved");
  }
  SECTION("or it does not come to the line that moves") {
    odd(finding).evidence.back().at = line(28, "Runner.to_cuda", "            batch[k] = batch[k].to(self.device)");
    CHECK(says(explained(finding), "it does not come to this line"));
  }
}

TEST_CASE("What a loop draws is moved behind the loop's line, where no variable has the tensor itself") {
  Finding finding = add("input_ids");
  odd(finding).lineage = {created(line(3, "<listcomp>", "data = [{'ids': torch.ones(3)} for _ in range(4)]"))};
  find(odd(finding), EvidenceKind::drawn_within_at, line(10, "<module>", "for batch in loader:"), "batch");
  CHECK(rule_of(finding) == "data_not_moved");
  CHECK(cause_line(explained(finding)) == 10);

  SECTION("not what the loop's function has made itself") {
    odd(finding).lineage = {created(line(11, "train", "    mask = torch.ones(3)"))};
    odd(finding).evidence.back().at.function = "train";
    CHECK(cause_line(explained(finding)) == 11);
  }
  SECTION("not what an object keeps that was made with a device left at its default") {
    const Frame made = line(12, "Cache.__init__", "        self.offset = torch.zeros(1, device=device)");
    odd(finding).lineage = {called_by(created(made), {line(36, "main", "caches = [Cache(n) for n in sizes]")})};
    find(odd(finding), EvidenceKind::attribute_set_at, made, "Cache.offset");
    find(odd(finding), EvidenceKind::device_from, line(36, "main", "caches = [Cache(n) for n in sizes]"),
         "device=None");
    CHECK(rule_of(finding) == "data_not_moved");
    find(odd(finding), EvidenceKind::default_stands_at,
         line(9, "Cache.__init__", "    def __init__(self, n, device=None):"));
    CHECK(cause_line(explained(finding)) == 36);
  }
}

TEST_CASE("State that was sent away comes back under a condition that is too narrow") {
  Finding finding = add("exp_avg", NameKind::attribute);
  const Frame sent = line(21, "Worker.move", "        state[k] = v.to(device)", "v.to(device)");
  odd(finding).lineage = {called_by(moved(sent, "cpu"), {line(34, "Worker.park", "        self.move('cpu')")}),
                          created(line(31, "Worker.train", "        self.optimizer.step()"), "cuda:0")};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "exp_avg of weight");
  find(odd(finding), EvidenceKind::brought_back_at, line(26, "Worker.wake", "            self.move(dev)"), "move");
  CHECK(rule_of(finding) == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 26);
  find(odd(finding), EvidenceKind::brought_back_if_at, line(25, "Worker.wake", "        if self.colocated:"));
  CHECK(cause_line(explained(finding)) == 25);
}

TEST_CASE("A gradient that meets fresh state is the odd one, not the state") {
  Finding finding = add("net.a.grad", NameKind::attribute);
  finding.where = line(30, "<module>", "opt.step()");
  finding.stack = {*finding.where};
  wanted(finding).name = "exp_avg of a";
  wanted(finding).lineage = {derived(*finding.where, "cuda:0"), created(line(4, "<module>", "net = Net()"))};
  find(wanted(finding), EvidenceKind::optimizer_state, {}, "exp_avg of a");
  CHECK(rule_of(finding) != "optimizer_state_elsewhere");
  wanted(finding).lineage.front().at = line(9, "<module>", "opt.step()  # before the move");
  CHECK(rule_of(finding) == "optimizer_state_elsewhere");
}

TEST_CASE("A variable of the function takes the device from another value than what it is made for") {
  Finding finding = add("mask");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  odd(finding).lineage = {created(
      line(17, "mask_of", "    hidden = torch.zeros(4, device=device)", "torch.zeros(4, device=device)"), "cuda:0")};
  find(odd(finding), EvidenceKind::device_taken_at, line(16, "mask_of", "    device = memory.device"), "memory.device");
  CHECK(rule_of(finding) == "made_without_device");
  CHECK(cause_line(explained(finding)) == 16);
  CHECK(says(explained(finding), "from `memory.device`, which is cuda:0"));
}

TEST_CASE("A helper that asks the machine for its device does not ask what it is given") {
  Finding finding = add("targets");
  const Frame made =
      line(28, "Net.forward", "        hot = torch.zeros(4, device=place)", "torch.zeros(4, device=place)");
  wanted(finding).lineage = {created(made, "cuda:0")};
  odd(finding).lineage = {moved(line(40, "<module>", "meter(y.cpu())", "y.cpu()"), "cpu"),
                          created(line(4, "<module>", "y = labels()"), "cuda:0")};
  find(wanted(finding), EvidenceKind::device_from,
       line(27, "Net.forward", "        place = 'cuda' if torch.cuda.is_available() else 'cpu'"), "place");
  CHECK(cause_line(explained(finding)) == 40);
  find(odd(finding), EvidenceKind::given_at, line(40, "<module>", "meter(y.cpu())"), "y.cpu()");
  CHECK(rule_of(finding) == "alone_on_accelerator");
  CHECK(cause_line(explained(finding)) == 28);
}

TEST_CASE("An index is brought to one of two values that it is used with") {
  Finding finding = add("self.values", NameKind::attribute);
  finding.where->function = "Cache.reorder";
  odd(finding).lineage = {
      moved(line(17, "Cache.update", "        self.values = v.to(self.park)", "v.to(self.park)"), "cpu"),
      created(line(4, "<module>", "v = f()"), "cuda:0")};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Cache.values");
  CHECK(cause_line(explained(finding)) == 17);
  find(wanted(finding), EvidenceKind::stayed_at,
       line(24, "Cache.reorder", "        x = x.to(self.keys.device)", "x.to(self.keys.device)"));
  CHECK(rule_of(finding) == "moved_away");
  CHECK(cause_line(explained(finding)) == 24);
}

TEST_CASE("What is made on the device of a value is no copy of it") {
  Finding finding = add("order");
  wanted(finding).device = "cuda:0";
  odd(finding).device = "cuda:1";
  const LineageStep shared = created(line(4, "<module>", "stack = f()"), "cuda:1");
  LineageStep made =
      derived(line(17, "Net.order", "        rows = torch.arange(4, device=self.stack.device)"), "cuda:1");
  made.op = "aten::arange";
  odd(finding).lineage = {made, shared};
  wanted(finding).lineage = {moved(line(27, "Net.run", "        part = part.cuda()", "part.cuda()"), "cuda:0"), shared};
  CHECK(rule_of(finding) != "left_behind");
  odd(finding).lineage.front().op = "aten::clone";
  CHECK(rule_of(finding) == "left_behind");
}

TEST_CASE("A weight that two modules share was moved by the second of them") {
  Finding finding = add("ids");
  const Frame map = line(27, "dispatch", "        part = model.get(name).to(where)", "model.get(name).to(where)");
  wanted(finding).device = "cuda:1";
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {by_module(moved(map, "cuda:1")), by_module(moved(map, "cuda:0")),
                             created(line(7, "Net.__init__", "        self.embed = Embedding(8, 4)"))};
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {moved(line(28, "hook", "    return x.to(where)", "x.to(where)"), "cuda:0"),
                          created(line(32, "<module>", "run(tensor([1]))"))};
  CHECK(rule_of(finding) == "moved_in_place");
  find(wanted(finding), EvidenceKind::tied_to, {}, "self.head.weight");
  CHECK(rule_of(finding) == "tied_weight");
  CHECK(says(explained(finding), "moves `self.head.weight` to cuda:1"));
}

TEST_CASE("A tensor without data tells of no device to pass") {
  Finding finding = add("weight");
  odd(finding).device = "meta";
  odd(finding).lineage = {created(line(11, "Net.forward", "        h = linear(x, self.proj.weight)"), "meta")};
  const Finding seen = explained(finding);
  CHECK_FALSE(seen.root_cause);
  REQUIRE(seen.fix);
  CHECK_THAT(seen.fix->text, Contains("so that its hooks bring the data"));
}

TEST_CASE("A sum over what lies on several accelerators is brought together where it is added up") {
  Finding finding = add("p.grad.norm()");
  finding.where = line(27, "clip", "        total = total + p.grad.norm()", "total + p.grad.norm()");
  finding.stack = {*finding.where};
  wanted(finding).name = "total";
  wanted(finding).shape.emplace();
  odd(finding).shape.emplace();
  odd(finding).device = "cuda:1";
  wanted(finding).lineage = {derived(*finding.where, "cuda:0"), derived(*finding.where, "cuda:0")};
  odd(finding).lineage = {derived(line(27, "clip", finding.where->source, "p.grad.norm()"), "cuda:1")};
  CHECK(rule_of(finding) == "gathered_from_devices");
  CHECK(cause_line(explained(finding)) == 27);
  CHECK(says(explained(finding), "adds up in `total`"));

  SECTION("not where the total comes from another line") {
    wanted(finding).lineage.front().at.line = 20;
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
}

TEST_CASE("An entry that is put into a dictionary of modules is the one to register, a list as a whole") {
  Finding finding = add("net.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(23, "Net.__init__", "            self.flat[i] = nn.Linear(4, 8)"))};
  find(odd(finding), EvidenceKind::module_not_registered,
       line(15, "Net.__init__", "        self.deep, self.flat = {}, {}"), "Net.flat[1]");
  CHECK(cause_line(explained(finding)) == 15);
  CHECK_THAT(explained(finding).fix->text, !Contains("{}, {}"));
  find(odd(finding), EvidenceKind::module_made_at,
       line(23, "Net.__init__", "            self.flat[i] = nn.Linear(4, 8)"), "Linear");
  CHECK(cause_line(explained(finding)) == 23);
  odd(finding).evidence.back().at.source = "            self.flat.append(nn.Linear(4, 8))";
  CHECK(cause_line(explained(finding)) == 15);
}

TEST_CASE("A class that stores attributes by itself registers no module") {
  Finding finding = add("self.choices[0].weight", NameKind::parameter);
  odd(finding).lineage = {created(line(29, "Choice.__init__", "        self.choices = nn.ModuleList(parts)"))};
  find(odd(finding), EvidenceKind::module_not_registered,
       line(29, "Choice.__init__", "        self.choices = nn.ModuleList(parts)"), "Choice.choices");
  find(odd(finding), EvidenceKind::own_setattr_at,
       line(23, "Mutable.__setattr__", "        self.__dict__[name] = value"), "Choice");
  CHECK(rule_of(finding) == "module_not_registered");
  CHECK(cause_line(explained(finding)) == 23);
  CHECK(says(explained(finding), "`Choice` stores attributes by itself"));
}

TEST_CASE("A helper that is given a buffer when the module is made keeps the one from before the move") {
  Finding finding = add("self._center.value", NameKind::attribute);
  odd(finding).lineage = {created(line(25, "Loss.__init__", "        self.register_buffer('center', torch.zeros(4))"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Center.value");
  find(odd(finding), EvidenceKind::moved_with_module, line(35, "<module>", "loss = Loss().to('cuda:0')"), "cuda:0");
  find(odd(finding), EvidenceKind::kept_from_before_move, line(15, "Center.__init__", "        self.value = value"),
       "Center.value");
  CHECK(cause_line(explained(finding)) == 15);
  find(odd(finding), EvidenceKind::attribute_set_at,
       line(26, "Loss.__init__", "        self._center = Center(self.center)"), "Loss._center");
  CHECK(rule_of(finding) == "buffer_from_before_move");
  CHECK(cause_line(explained(finding)) == 26);
}

TEST_CASE("A function of torch's that is given a loader moves nothing of it") {
  Finding finding = add("x");
  odd(finding).name = "batch";
  const Frame call = line(40, "Trainer.finish", "        update_bn(self.loader, self.average)");
  LineageStep stacked = derived(call);
  stacked.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py";
  odd(finding).lineage = {stacked, created(line(3, "<module>", "data = TensorDataset(torch.randn(12, 4))"))};
  finding.stack.push_back(call);
  CHECK(cause_line(explained(finding)) == 3);
  find(odd(finding), EvidenceKind::given_at, call, "self.loader");
  CHECK(rule_of(finding) == "data_not_moved");
  CHECK(cause_line(explained(finding)) == 40);
}

TEST_CASE("A device that an object says of itself is asked in the line that makes the tensor") {
  Finding finding = add("weights");
  const Frame made = line(25, "Net.forward", "    weights = torch.tensor(w, device=pipe.device)",
                          "torch.tensor(w, device=pipe.device)");
  odd(finding).lineage = {called_by(created(made), {line(43, "<module>", "run(weigh(pipe, prompts))")})};
  find(odd(finding), EvidenceKind::device_from, line(43, "<module>", "run(weigh(pipe, prompts))"), "pipe");
  CHECK(rule_of(finding) == "made_without_device");
  CHECK(cause_line(explained(finding)) == 25);
  CHECK(says(explained(finding), "begins in this line on `pipe.device`"));
}

TEST_CASE("A part that is made below the move of its model, in the place of one that had moved, stays behind") {
  Finding finding = add("self.encoder.weight", NameKind::parameter);
  const Frame below = line(43, "Policy.load", "            head = Head(self.horizon)", "Head(self.horizon)");
  odd(finding).lineage = {
      called_by(created(line(16, "Head.__init__", "        self.encoder = nn.Linear(4, 8)")), {below})};
  find(odd(finding), EvidenceKind::module_bound_at, line(46, "Policy.load", "        self.model = model"),
       "policy.model");
  CHECK(cause_line(explained(finding)) == 46);
  find(odd(finding), EvidenceKind::made_alike_moved_at,
       line(41, "Policy.load", "        model.to(device=self.device)"));
  find(odd(finding), EvidenceKind::asked_apart_at, below);
  find(odd(finding), EvidenceKind::model_spread, {}, "Robot");
  CHECK(rule_of(finding) == "module_not_moved");
  CHECK(cause_line(explained(finding)) == 43);
}

TEST_CASE("A helper that moves what it is given, and calls itself for the parts, has done as its caller wanted") {
  Finding finding = add("hidden");
  const Frame call = line(26, "Trainer.validate", "            outputs.append(detach(out, to_cpu=self.to_cpu))");
  odd(finding).lineage = {
      called_by(moved(line(15, "detach", "    return value.cpu() if to_cpu else value", "value.cpu()"), "cpu"),
                {line(14, "detach.<locals>.<dictcomp>", "        return {k: detach(v, to_cpu) for k, v in x}"),
                 line(14, "detach", "        return {k: detach(v, to_cpu) for k, v in x}"), call}),
      created(line(5, "main", "    a = f()"), "cuda:0")};
  CHECK(rule_of(finding) == "moved_away");
  CHECK(cause_line(explained(finding)) == 26);
}

TEST_CASE("What a method of the object that says a device takes to another object is moved there") {
  Finding finding = add("batch['obs']", NameKind::attribute);
  finding.where->function = "Algorithm.process";
  const Frame made = line(37, "Experiment.collect", "        x = torch.randn(4, device=self.sampling_device)",
                          "torch.randn(4, device=self.sampling_device)");
  const Frame taken = line(41, "Experiment.run", "        batch = dict(self.collect())");
  odd(finding).lineage = {called_by(created(made), {taken})};
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {
      by_module(moved(line(21, "Algorithm.__init__", "        self.critic = Net().to(device)"), "cuda:0")),
      created(line(21, "Algorithm.__init__", "        self.critic = Net().to(device)"))};
  find(odd(finding), EvidenceKind::device_from,
       line(33, "Experiment.__init__", "        self.sampling_device = sampling_device"), "self.sampling_device");
  finding.stack.push_back(taken);
  find(odd(finding), EvidenceKind::bound_at, taken, "batch");
  CHECK(rule_of(finding) == "made_without_device");
  CHECK(cause_line(explained(finding)) == 41);
}

}  // namespace
}  // namespace devsan::report
