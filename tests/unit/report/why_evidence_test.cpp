// Rules that need what the process found out beside the history: each with a program that it is about, and with one
// that looks like it and is not.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "main", "    x = torch.randn(4)", "torch.randn(4)");

TEST_CASE("A copy that is dropped as soon as it is made is the cause") {
  Finding finding = add("batch");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::copied_away, line(7, "main", "    batch.to(dev)  # to the device", "batch.to(dev)"),
       "cuda:0");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 7);
  CHECK_THAT(told.root_cause->why, Contains("returns a copy on cuda:0") && Contains("dropped"));
  CHECK_THAT(told.fix->text, Contains("`batch = batch.to(dev)`"));
}

TEST_CASE("A copy dropped in a loop over a batch is the cause") {
  Finding finding = add("batch['x']", NameKind::attribute);
  find(odd(finding), EvidenceKind::copied_away, line(7, "main", "    for t in batch.values(): t.to(dev)", "t.to(dev)"),
       "cuda:0");
  CHECK(cause_line(explained(finding)) == 7);
}

TEST_CASE("A copy that is kept, and one that another device got, is not the cause") {
  Finding finding = add("batch");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::copied_away, line(7, "main", "    y = batch.to(other)", "batch.to(other)"),
       "cuda:1");
  CHECK(cause_line(explained(finding)) == 5);
}

TEST_CASE("A part that was copied stands for nothing else: what it was taken from was made on the CPU") {
  Finding finding = add("table");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::copied_away,
       line(8, "Net.forward", "    seen = table[:, :n].to(dev)", "table[:, :n].to(dev)"), "cuda:0");
  CHECK(cause_line(explained(finding)) == 5);
  odd(finding).evidence.back().at = line(8, "Net.forward", "    seen = table['ids'].to(dev)", "table['ids'].to(dev)");
  CHECK(cause_line(explained(finding)) == 8);
}

TEST_CASE("The name that still means the tensor from before the copy is the cause") {
  Finding finding = add("tokens");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::copied_away, line(8, "Net.forward", "    x = x.to(dev)", "x.to(dev)"), "cuda:0");
  find(odd(finding), EvidenceKind::bound_at, line(7, "Net.forward", "    tokens = prompt"), "tokens");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 7);
  CHECK_THAT(told.root_cause->why, Contains("model.py:8 copies it to cuda:0"));
  CHECK_THAT(told.fix->text, Contains("`tokens = prompt.to('cuda:0')`") || Contains("`tokens = prompt.to(x.device)`"));
}

TEST_CASE("A plain attribute of a module is to be registered as a buffer") {
  Finding finding = add("self.mask", NameKind::attribute);
  odd(finding).lineage = {created(line(3, "make_mask", "    return torch.ones(4).tril()", "torch.ones(4)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.mask");
  find(odd(finding), EvidenceKind::attribute_set_at, line(12, "Net.__init__", "        self.mask = make_mask()"),
       "Net.mask");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why, Contains("plain attribute of the module `Net`"));
  CHECK_THAT(told.fix->text, Contains("`self.register_buffer('mask', make_mask())`"));
}

TEST_CASE("An attribute that was made after its module had moved is not what the move left behind") {
  Finding finding = add("state");
  const Frame made =
      line(27, "Net.initial", "        return torch.zeros(4, device=self.home)", "torch.zeros(4, device=self.home)");
  odd(finding).lineage = {created(made)};
  odd(finding).lineage.front().calls = {line(61, "<module>", "net.reset()")};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.state");
  find(odd(finding), EvidenceKind::attribute_set_at, line(42, "Net.reset", "        self.state = self.initial()"),
       "Net.state");
  find(odd(finding), EvidenceKind::holder_moved_at, line(59, "<module>", "net = Net().to(device)"), "cuda:0");
  CHECK(explained(finding).rule != "attribute_not_buffer");
  odd(finding).evidence.back().at.line = 62;
  CHECK(explained(finding).rule == "attribute_not_buffer");
}

TEST_CASE("An entry of a plain container is registered by a name of its own") {
  Finding finding = add("self.tables[0]", NameKind::attribute);
  odd(finding).lineage = {created(line(3, "make", "    return torch.ones(4)", "torch.ones(4)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.tables[0]");
  find(odd(finding), EvidenceKind::attribute_set_at, line(12, "Net.__init__", "        self.tables = [make(), make()]"),
       "Net.tables");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.fix->text, Contains("each of its entries"));
  CHECK(told.fix->text.find("register_buffer('tables") == std::string::npos);
}

TEST_CASE("An attribute that the failing function itself makes in each call only lacks its device") {
  Finding finding = add("self.mask", NameKind::attribute);
  const Frame made = line(29, "Net.forward", "        self.mask = torch.ones(4)", "torch.ones(4)");
  odd(finding).lineage = {created(made)};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.mask");
  find(odd(finding), EvidenceKind::attribute_set_at, made, "Net.mask");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 29);
  CHECK_THAT(told.fix->text, Contains("`torch.ones(4, device=x.device)`"));
}

TEST_CASE("A module in a plain list is to be registered") {
  Finding finding = add("self.convs[0].weight", NameKind::parameter);
  odd(finding).lineage = {created(line(4, "block", "    return nn.Linear(4, 4)", "nn.Linear(4, 4)"))};
  find(odd(finding), EvidenceKind::module_not_registered,
       line(12, "Net.__init__", "        self.convs = [block(), block()]"), "self.convs");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.fix->text, Contains("`self.convs = nn.ModuleList([block(), block()])`"));
  finding.operands[1].evidence[0].at.source = "        self.convs = make()";
  CHECK_THAT(explained(finding).fix->text, Contains("`nn.ModuleList` or `nn.ModuleDict`"));
}

TEST_CASE("A hook that the failing line does not run is the cause, and no other hook") {
  Finding finding = add("self.proj.weight", NameKind::parameter);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::owner_forward_hook,
       line(20, "<module>", "net.proj.register_forward_pre_hook(bring)"), "bring");
  CHECK(cause_line(explained(finding)) == 20);
  odd(finding).evidence.clear();
  CHECK(cause_line(explained(finding)) == 5);
}

TEST_CASE("A hook that moves what is given by position leaves what is given by name") {
  Finding finding = add("mask");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  odd(finding).lineage = {created(kMade, "cuda:0")};
  find(odd(finding), EvidenceKind::crossing_at, line(60, "<module>", "x = layer(x, mask=mask)"), "mask");
  find(odd(finding), EvidenceKind::hook_leaves_names_at,
       line(50, "<module>", "    layer.register_forward_pre_hook(bring)", "layer.register_forward_pre_hook"), "mask");
  Finding told = explained(finding);
  CHECK(told.rule == "hook_leaves_names");
  CHECK(cause_line(told) == 50);
  CHECK_THAT(told.fix->text, Contains("with_kwargs=True"));
  odd(finding).evidence.back().at = line(44, "bring", "    return send(args, where), kwargs");
  told = explained(finding);
  CHECK(cause_line(told) == 44);
  CHECK_THAT(told.fix->text, Contains("to cuda:1"));
}

TEST_CASE("A hook of a library is passed by in the program's line, which is no cause") {
  Finding finding = add("self.proj.weight", NameKind::parameter);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::owner_forward_hook, library_line(20, "attach", "module.forward = new_forward"),
       "new_forward");
  CHECK(cause_line(explained(finding)) == 0);
  CHECK(explained(finding).fix->line == 30);
}

TEST_CASE("State that is put into an optimizer on another device is the cause") {
  Finding finding = add("exp_avg of weight", NameKind::attribute);
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::optimizer_state, line(17, "restore", "    opt.state[p] = saved[p]"),
       "exp_avg of weight");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 17);
  CHECK_THAT(told.fix->text, Contains("`exp_avg of weight`") && Contains("load_state_dict"));
  finding.operands[1].evidence[0].at = {};
  CHECK(cause_line(explained(finding)) == 5);
}

TEST_CASE("A default argument is the cause where its function is defined") {
  Finding finding = add("scale");
  odd(finding).lineage = {created(line(9, "<module>", "def f(x, scale=torch.ones(4)):", "torch.ones(4)"))};
  find(odd(finding), EvidenceKind::default_argument, line(9, "<module>", "def f(x, scale=torch.ones(4)):"), "f(scale)");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 9);
  CHECK_THAT(told.root_cause->why, Contains("made once") && Contains("f(scale)"));
}

TEST_CASE("A default argument of a definition over several lines is the cause in its own line") {
  Finding finding = add("scale");
  const Frame own = line(11, "<module>", "        scale: torch.Tensor = torch.ones(4)):", "torch.ones(4)");
  odd(finding).lineage = {created(own)};
  find(odd(finding), EvidenceKind::default_argument, line(9, "f", "def f(x,"), "f(scale)");
  CHECK(cause_line(explained(finding)) == 11);
  odd(finding).lineage.front().at.source = "        scale=torch.ones(4)):";
  CHECK(cause_line(explained(finding)) == 11);
  odd(finding).lineage.front().at.source = "scales = torch.ones(4)";
  CHECK(cause_line(explained(finding)) == 9);
}

TEST_CASE("State that an optimizer made before its parameters were moved is the move's fault") {
  Finding finding = add("exp_avg of weight", NameKind::attribute);
  const Frame step = line(13, "step", "    optimizer.step()", "optimizer.step()");
  finding.where = step;
  finding.stack.front().torch = true;
  odd(finding).lineage = {derived(step), created(line(5, "Net.__init__", "        self.layer = nn.Linear(3, 2)"))};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "exp_avg of weight");
  find(odd(finding), EvidenceKind::source_moved_at, line(20, "train", "    net.to(device)"), "cuda:0");
  const Finding told = explained(finding);
  CHECK(told.rule == "optimizer_state_elsewhere");
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.fix->text, Contains("before the first step"));
  odd(finding).lineage.front().at = line(7, "Signs.step", "        state['mean'] = torch.zeros_like(p)");
  CHECK(cause_line(explained(finding)) == 20);
  odd(finding).lineage.front().at = line(18, "train", "    optimizer = Adagrad(net.parameters())");
  CHECK(cause_line(explained(finding)) == 18);
}

TEST_CASE("A module as a default argument is the cause where one caller has moved it for all") {
  Finding finding = add("image");
  odd(finding).lineage = {created(line(28, "Net.__init__", "image = torch.randn(4)", "torch.randn(4)"))};
  wanted(finding).is = NameKind::buffer;
  wanted(finding).lineage = {moved(line(24, "<module>", "first.to(dev)"), "cuda:0"), created(kMade)};
  find(wanted(finding), EvidenceKind::default_argument, line(9, "<module>", "def __init__(self, palette=Palette()):"),
       "Net.__init__(palette)");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 9);
  CHECK_THAT(told.root_cause->why, Contains("model.py:24"));
  wanted(finding).lineage = {created(kMade, "cuda:0")};
  CHECK(cause_line(explained(finding)) == 28);
}

TEST_CASE("The line that moved the rest of a batch is the cause, but not for what its function makes itself") {
  Finding finding = add("target['boxes']", NameKind::attribute);
  odd(finding).lineage = {created(line(15, "collate", "    boxes = torch.rand(2, 4)", "torch.rand(2, 4)"))};
  find(odd(finding), EvidenceKind::sibling_moved,
       line(20, "main", "    images = batch['images'].to(dev)", "batch['images'].to(dev)"), "['images']");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_out_of_move");
  CHECK(cause_line(told) == 20);
  CHECK_THAT(told.root_cause->why,
             Contains("`['images']`") && Contains("`target['boxes']`, which came with it, is left on the CPU"));
  CHECK_THAT(told.fix->text, Contains("model.py:30"));
  odd(finding).lineage = {created(line(19, "main", "    boxes = torch.rand(2, 4)", "torch.rand(2, 4)"))};
  CHECK(cause_line(explained(finding)) == 19);
  odd(finding).evidence.front().at = library_line(20, "send", "return {k: v.to(device)}");
  CHECK(explained(finding).rule != "left_out_of_move");
}

TEST_CASE("The line that makes the object anew is the cause, also where a comprehension moves the siblings") {
  Finding finding = add("graph.edges", NameKind::attribute);
  odd(finding).lineage = {created(line(40, "<module>", "edges = torch.tensor([[0, 1]])", "torch.tensor([[0, 1]])"))};
  const Frame moving =
      line(17, "Graph.to.<locals>.<dictcomp>", "    moved.features = {k: v.to(d) for k, v in f}", "v.to(d)");
  find(odd(finding), EvidenceKind::sibling_moved, moving, "['x']");
  find(odd(finding), EvidenceKind::rebuilt_at, line(16, "Graph.to", "    moved = Graph(self.edges)"), "Graph");
  CHECK(explained(finding).rule == "left_out_of_move");
  CHECK(cause_line(explained(finding)) == 16);
  odd(finding).evidence.back().at.function = "Graph.to.<locals>.copy";
  CHECK(cause_line(explained(finding)) == 17);
}

TEST_CASE("A buffer's second name is the cause where it is stored, not where the module's move copied the buffer") {
  Finding finding = add("frequencies");
  odd(finding).lineage = {created(line(13, "Net.__init__", "f = torch.arange(4)", "torch.arange(4)"))};
  find(odd(finding), EvidenceKind::copied_away, line(41, "<module>", "model = Net().to(dev)", "Net().to(dev)"),
       "cuda:0");
  CHECK(cause_line(explained(finding)) == 41);
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.original");
  find(odd(finding), EvidenceKind::attribute_set_at, line(15, "Net.__init__", "self.original = self.frequencies"),
       "Net.original");
  CHECK(cause_line(explained(finding)) == 15);
}

TEST_CASE("A metric that no module registers is the cause before the total that it keeps") {
  Finding finding = add("correct");
  odd(finding).device = "cuda:0";
  odd(finding).shape = std::vector<std::int64_t>{};
  wanted(finding).device = "cpu";
  wanted(finding).shape = std::vector<std::int64_t>{};
  wanted(finding).is = NameKind::buffer;
  wanted(finding).lineage = {created(kMade)};
  find(wanted(finding), EvidenceKind::module_bound_at, line(40, "main", "net = Net()"), "net");
  CHECK(explained(finding).rule == "total_made_on_cpu");
  find(wanted(finding), EvidenceKind::module_not_registered, line(28, "Net.__init__", "self.metrics = {'a': M()}"),
       "Net.metrics['a']");
  CHECK(cause_line(explained(finding)) == 28);
}

TEST_CASE("What an earlier call took from a weight and kept on an object is the cause") {
  Finding finding = add("self.weight.original", NameKind::attribute);
  odd(finding).lineage = {derived(line(13, "Net.forward", "    self.weight.original = self.weight.clone()")),
                          created(kMade)};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Parameter.original");
  CHECK(cause_line(explained(finding)) == 13);
}

TEST_CASE("What an object keeps that it was given is the cause where it is stored") {
  Finding finding = add("self.factor", NameKind::attribute);
  odd(finding).lineage = {created(line(40, "<module>", "w = Whitening(torch.eye(3))", "torch.eye(3)"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Whitening.factor");
  find(odd(finding), EvidenceKind::attribute_set_at, line(12, "Whitening.__init__", "        self.factor = factor"),
       "Whitening.factor");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why, Contains("`Whitening` keeps `factor`") && Contains("model.py:40 put it"));
  CHECK_THAT(told.fix->text, Contains("`self.factor = factor.to('cuda:0')`"));
}

TEST_CASE("What a batch holds is to be moved where it is taken out, if its sibling is moved there") {
  Finding finding = add("acts");
  odd(finding).lineage = {created(line(3, "<module>", "acts = torch.tensor([1])", "torch.tensor([1])"))};
  find(odd(finding), EvidenceKind::bound_at, line(28, "Net.forward", "        acts = batch['acts']"), "acts");
  CHECK(cause_line(explained(finding)) == 3);
  wanted(finding).lineage = {moved(line(27, "Net.forward", "        x = batch['x'].to(dev)"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.root_cause->why, Contains("model.py:27 moves what it meets"));
  CHECK_THAT(told.fix->text, Contains("`acts = batch['acts'].to(x.device)`"));
  finding.operands[1].evidence[0].at.source = "        acts = embed(batch['acts'])";
  CHECK(cause_line(explained(finding)) == 3);
}

TEST_CASE("What comes out of a library is to be moved where the program gets hold of it") {
  Finding finding = add("ids");
  odd(finding).lineage = {created(library_line(90, "encode", "return torch.tensor(ids)"))};
  find(odd(finding), EvidenceKind::bound_at, line(28, "Net.forward", "        ids = encode(text)"), "ids");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.fix->text,
             Contains("`ids = encode(text).to('cuda:0')`") || Contains("`ids = encode(text).to(x.device)`"));
}

TEST_CASE("A generator is to be made where its variable gets its value") {
  Finding finding = add("gen");
  odd(finding).generator = true;
  odd(finding).shape.reset();
  find(odd(finding), EvidenceKind::bound_at, line(11, "<module>", "gen = torch.Generator().manual_seed(0)"), "gen");
  CHECK(cause_line(explained(finding)) == 11);
  odd(finding).evidence.clear();
  CHECK(cause_line(explained(finding)) == 0);
  find(odd(finding), EvidenceKind::generator_made_at, line(9, "make", "    g = torch.Generator().manual_seed(0)"), "");
  CHECK(cause_line(explained(finding)) == 9);
}

// `image = sample.image.to(device)`, and in the next line `mask`.
Finding taken_beside(const std::string& moving, const std::string& taking) {
  Finding finding = add("mask");
  odd(finding).lineage = {created(line(5, "Scans.__getitem__", "        return Sample(image, image > 0)"))};
  find(odd(finding), EvidenceKind::sibling_moved, line(41, "step", moving), ".image");
  find(odd(finding), EvidenceKind::bound_at, line(42, "step", taking), "mask");
  return finding;
}

TEST_CASE("What is taken out of a batch in a line of its own is moved in that line") {
  const Finding told = explained(taken_beside("    image = sample.image.to(device)", "    mask = sample.mask"));
  CHECK(told.rule == "left_out_of_move");
  CHECK(cause_line(told) == 42);
  CHECK_THAT(told.fix->text, Contains("`mask = sample.mask.to("));
  const Finding next = taken_beside("    image = next(stream).to(device)", "    mask = next(stream)");
  CHECK(cause_line(explained(next)) == 42);

  SECTION("not where a line moves what it goes through, or the object is another one") {
    CHECK(cause_line(explained(taken_beside("    sample = {k: v.to(device) for k, v in sample.items()}",
                                            "    mask = sample.mask"))) == 41);
    CHECK(cause_line(explained(taken_beside("    image = other.image.to(device)", "    mask = sample.mask"))) == 41);
    CHECK(cause_line(explained(taken_beside("    image, _ = move(sample)", "    mask = sample.mask"))) == 41);
  }
}

}  // namespace
}  // namespace devsan::report
