// Rules about parameters, buffers and plain attributes of modules that were made apart, given to others, or kept.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "report/why/history.h"
#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMove = line(50, "main", "    net.cpu()", "net.cpu()");

// `self.weight` has left cuda:0, and `self.scale`, a plain attribute, is there still.
Finding left_attribute() {
  Finding finding = add("self.weight", NameKind::parameter);
  odd(finding).lineage = {
      by_module(moved(kMove, "cpu")),
      created(line(10, "Net.__init__", "        self.linear = nn.Linear(8, 8, device=d)"), "cuda:0")};
  wanted(finding).name = "self.scale";
  wanted(finding).is = NameKind::attribute;
  const Frame made = line(9, "Net.__init__", "        self.scale = torch.ones(8, device=d)", "torch.ones(8, device=d)");
  wanted(finding).lineage = {created(made, "cuda:0")};
  find(wanted(finding), EvidenceKind::held_by_module, {}, "Net.scale");
  find(wanted(finding), EvidenceKind::attribute_set_at, made, "Net.scale");
  return finding;
}

TEST_CASE("An attribute that stays on the accelerator when its module leaves is to be a buffer") {
  Finding finding = left_attribute();
  const Finding told = explained(finding);
  CHECK(told.rule == "module_left_attribute");
  CHECK(cause_line(told) == 9);
  CHECK(told.root_cause->operand == "self.scale");
  CHECK_THAT(told.root_cause->why, Contains("model.py:50 has taken what it meets to the CPU since"));
  CHECK_THAT(told.fix->text, Contains("`self.register_buffer('scale', torch.ones(8, device=d))`"));

  SECTION("not where the module was never there") {
    odd(finding).lineage.back().device = "cpu";
    CHECK(explained(finding).rule != "module_left_attribute");
  }
  SECTION("not where no module was moved") {
    odd(finding).lineage.front().innermost = kMove;
    CHECK(explained(finding).rule != "module_left_attribute");
  }
  SECTION("not where no module keeps it") {
    wanted(finding).evidence.erase(wanted(finding).evidence.begin());
    CHECK(explained(finding).rule != "module_left_attribute");
  }
  SECTION("not where the failing function stores it anew") {
    wanted(finding).evidence.back().at.function = "Net.forward";
    CHECK(explained(finding).rule != "module_left_attribute");
  }
}

TEST_CASE("An attribute that stays is to be a buffer where what it meets is new, and its module has left") {
  Finding finding = left_attribute();
  odd(finding).name = "rows";
  odd(finding).is = NameKind::local;
  odd(finding).lineage = {created(line(52, "main", "    rows = torch.ones(8)", "torch.ones(8)"))};
  CHECK(rule_of(finding) != "module_left_attribute");
  find(wanted(finding), EvidenceKind::holder_moved_at, kMove, "cpu");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_left_attribute");
  CHECK(cause_line(told) == 9);
  CHECK_THAT(told.root_cause->why, Contains("model.py:50 has taken the module to the CPU since"));

  SECTION("not where the module has gone elsewhere") {
    wanted(finding).evidence.back().text = "cuda:1";
    CHECK(rule_of(finding) != "module_left_attribute");
  }
}

// `codec.codebook`, of a module that moves such attributes by itself.
Finding moves_its_own() {
  Finding finding = add("codec.codebook", NameKind::attribute);
  const Frame made = line(12, "Codec.__init__", "        self.codebook = torch.randn(4)", "torch.randn(4)");
  odd(finding).lineage = {called_by(created(made), {line(55, "main", "    codec = Codec(4)", "Codec(4)")})};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Codec.codebook");
  find(odd(finding), EvidenceKind::attribute_set_at, made, "Codec.codebook");
  find(odd(finding), EvidenceKind::own_apply_at, line(15, "Codec._apply", "    def _apply(self, fn):"), "Codec");
  return finding;
}

TEST_CASE("A module that moves its plain attributes by itself was not moved where one is on the CPU") {
  Finding finding = moves_its_own();
  const Finding told = explained(finding);
  CHECK(told.rule == "attribute_not_buffer");
  CHECK(cause_line(told) == 55);
  CHECK_THAT(told.root_cause->why, Contains("belongs to a `Codec`") && Contains("by itself, in model.py:15"));
  CHECK_THAT(told.fix->text, Contains("`.to('cuda:0')`"));

  SECTION("else the attribute is to be a buffer") {
    odd(finding).evidence.pop_back();
    CHECK(cause_line(explained(finding)) == 12);
  }
  SECTION("also where a library has moved it, and nobody the module") {
    LineageStep& made = odd(finding).lineage.front();
    made.device = "cuda:0";
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(library_line(57, "offload", "t = t.cpu()"), "cpu"));
    CHECK(cause_line(explained(finding)) == 12);
  }
  SECTION("and where nobody knows who made the module") {
    odd(finding).lineage.front().calls.clear();
    CHECK_THAT(explained(finding).fix->text, Contains("register_buffer('codebook'"));
  }
}

TEST_CASE("A plain attribute beside what a default device's block made is not told of as one that stayed") {
  Finding finding = moves_its_own();
  odd(finding).evidence.pop_back();
  CHECK(explained(finding).rule == "attribute_not_buffer");
  find(wanted(finding), EvidenceKind::default_device_block_at, line(53, "main", "    with torch.device('cuda'):"));
  CHECK(explained(finding).rule != "attribute_not_buffer");
}

// `self.rank["q"] = nn.Parameter(...)` in a plain dictionary, or list, of a module.
Finding in_container(const char* path) {
  Finding finding = add("weight");
  const Frame put = line(18, "Lora.add", "        self.rank[name] = nn.Parameter(torch.zeros(4))", "torch.zeros(4)");
  odd(finding).lineage = {created(put)};
  find(odd(finding), EvidenceKind::held_by_module, {}, path);
  find(odd(finding), EvidenceKind::entry_put_at, put, "self.rank");
  find(odd(finding), EvidenceKind::attribute_set_at, line(14, "Lora.__init__", "        self.rank = {}"), "Lora.rank");
  return finding;
}

TEST_CASE("Parameters in a plain container are told of where the module stores that") {
  Finding finding = in_container("Lora.rank['q']");
  const Finding told = explained(finding);
  CHECK(told.rule == "attribute_not_buffer");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("model.py:18 puts into `Lora.rank`, which is a plain dictionary"));
  CHECK_THAT(told.fix->text, Contains("`nn.ParameterDict()`"));
  Finding list = in_container("Lora.rank[0]");
  odd(list).evidence.back().at.source = "        self.rank = []";
  CHECK_THAT(explained(list).fix->text, Contains("`nn.ParameterList()`"));
  CHECK_THAT(explained(in_container("Lora.rank[0]")).fix->text, Contains("`nn.ParameterDict()`"));

  SECTION("also where the line that puts them there made them") {
    odd(finding).evidence.erase(odd(finding).evidence.begin() + 1);
    CHECK(cause_line(explained(finding)) == 14);
  }
  SECTION("not what is no Parameter") {
    odd(finding).evidence[1].at.source = "        self.rank[name] = torch.zeros(4)";
    CHECK(cause_line(explained(finding)) != 14);
  }
  SECTION("not a container that is made anew with its entries") {
    odd(finding).evidence.back().at.function = "Lora.reset";
    const Finding other = explained(finding);
    CHECK_FALSE((other.fix && other.fix->text.find("ParameterDict") != std::string::npos));
  }
}

// `Explainer(net, EdgeScorer(4))` keeps `scorer`, which its caller has made on the CPU.
Finding kept_module() {
  Finding finding = add("self.scorer.weight", NameKind::parameter);
  const Frame made = line(7, "EdgeScorer.__init__", "        self.weight = nn.Parameter(torch.ones(4))");
  odd(finding).lineage = {
      called_by(created(made), {line(62, "main", "    explainer = Explainer(net, EdgeScorer(4))", "EdgeScorer(4)")})};
  find(odd(finding), EvidenceKind::module_bound_at,
       line(21, "Explainer.__init__", "        self.net, self.scorer = net.eval(), scorer"), "self.scorer");
  return finding;
}

TEST_CASE("A module that an object keeps as it was given is told of where it was made") {
  Finding finding = kept_module();
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 62);
  CHECK_THAT(told.root_cause->why, Contains("kept as `self.scorer` by a `Explainer`"));
  CHECK_THAT(told.fix->text, Contains("`.to('cuda:0')`"));

  SECTION("not where the object computes it from what it was given") {
    odd(finding).evidence.front().text = "self.net";
    CHECK(cause_line(explained(finding)) == 21);
  }
  SECTION("not where the object makes it") {
    odd(finding).evidence.front().at = line(21, "Explainer.__init__", "        self.scorer = EdgeScorer(4)");
    CHECK(cause_line(explained(finding)) == 21);
  }
  SECTION("not where a function gives it its name") {
    odd(finding).evidence.front().at.function = "Explainer.attach";
    CHECK(cause_line(explained(finding)) == 21);
  }
}

TEST_CASE("What a class's own method makes around children that were moved is made on the wrong device") {
  Finding finding = add("self.gate", NameKind::parameter);
  const Frame made = line(14, "Adapter.build", "        self.gate = nn.Parameter(torch.ones(4))", "torch.ones(4)");
  odd(finding).lineage = {called_by(created(made), {line(9, "Adapter.__init__", "        self.build()"),
                                                    line(60, "main", "    model[1] = Adapter(model[1])")})};
  find(odd(finding), EvidenceKind::children_moved_at, line(55, "main", "        child.to(device)"), "Adapter");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("by a `Adapter` around modules that model.py:55 had moved"));
  CHECK_THAT(told.fix->text, Contains("`torch.ones(4, device='cuda:0')`"));

  odd(finding).evidence.front().text = "Block";
  const Finding other = explained(finding);
  CHECK_FALSE((other.root_cause && other.root_cause->why.find("around modules") != std::string::npos));
}

TEST_CASE("Of a copy of a module that was not moved either, the original is to be moved before") {
  Finding finding = add("self.target.weight", NameKind::parameter);
  odd(finding).lineage = {derived(line(22, "Agent.__init__", "        self.target = copy.deepcopy(self.net)")),
                          created(line(7, "Net.__init__", "        self.weight = nn.Parameter(torch.ones(4))"))};
  find(odd(finding), EvidenceKind::module_bound_at,
       line(22, "Agent.__init__", "        self.target = copy.deepcopy(self.net)"), "self.target");
  CHECK(cause_line(explained(finding)) == 22);
  find(odd(finding), EvidenceKind::copy_of_module_at, line(21, "Agent.__init__", "        self.net = Net()"),
       "self.net");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 21);
  CHECK_THAT(told.root_cause->why, Contains("a copy that model.py:22 takes of `self.net`"));
  CHECK_THAT(told.fix->text, Contains("Move `self.net` with `.to('cuda:0')` before it is copied"));
}

// `queue.t()` of a buffer that `Memory.__init__` registers.
Finding computed_of_buffer() {
  Finding finding = add("queue.t()", NameKind::temporary);
  const Frame made =
      line(11, "Memory.__init__", "        self.register_buffer('queue', torch.randn(4))", "torch.randn(4)");
  odd(finding).lineage = {derived(line(30, "Net.forward", "        return x + queue.t()", "queue.t()")),
                          called_by(created(made), {line(58, "main", "    memory = Memory()", "Memory()")})};
  return finding;
}

TEST_CASE("What is computed from a weight whose module was never moved is told of where the module is made") {
  Finding finding = computed_of_buffer();
  const Finding told = explained(finding);
  CHECK(told.rule == "made_without_device");
  CHECK(cause_line(told) == 58);
  CHECK_THAT(told.root_cause->why, Contains("a parameter or buffer that model.py:11 makes"));

  SECTION("not what is no weight") {
    odd(finding).lineage.back().at =
        line(11, "Memory.__init__", "        self.queue = torch.randn(4)", "torch.randn(4)");
    CHECK(cause_line(explained(finding)) == 11);
  }
  SECTION("not what a constructor makes of what is elsewhere already") {
    wanted(finding).lineage = {derived(line(10, "Memory.__init__", "        keys = model.keys.clone()"), "cuda:0")};
    CHECK(cause_line(explained(finding)) == 11);
  }
  SECTION("not where nobody knows who made the module") {
    odd(finding).lineage.back().calls.clear();
    CHECK_THAT(explained(finding).root_cause->why, Contains("`queue.t()` begins in this line"));
  }
}

// `criterion = nn.CrossEntropyLoss(weight=weights)`, where a helper made the weights.
Finding given_weight() {
  Finding finding = add("weight");
  odd(finding).lineage = {created(line(8, "balance", "    return torch.tensor(counts)", "torch.tensor(counts)"))};
  find(odd(finding), EvidenceKind::weight_given_at,
       line(44, "main", "    criterion = nn.CrossEntropyLoss(weight=balance(y))"), "CrossEntropyLoss.weight");
  return finding;
}

TEST_CASE("A tensor that is given to a module as its weight is told of where it is given") {
  Finding finding = given_weight();
  const Finding told = explained(finding);
  CHECK(told.rule == "made_without_device");
  CHECK(cause_line(told) == 44);
  CHECK_THAT(told.root_cause->why, Contains("given to a `CrossEntropyLoss` here, as `weight`, on the CPU"));

  SECTION("not where one function makes and gives it") {
    odd(finding).lineage.front().at.function = "main";
    CHECK(cause_line(explained(finding)) == 8);
  }
  SECTION("not where the function that made it still runs") {
    finding.stack.push_back(line(9, "balance", "    return check(counts)"));
    CHECK(cause_line(explained(finding)) == 8);
  }
  SECTION("not where it is on an accelerator") {
    odd(finding).device = odd(finding).lineage.front().device = "cuda:1";
    CHECK(cause_line(explained(finding)) != 44);
  }
}

// `mask`, made on `self.device`, meets what moved weights have computed.
Finding made_on_attribute() {
  Finding finding = add("mask");
  odd(finding).lineage = {created(line(25, "Net.forward", "        mask = torch.ones(4, device=self.device)",
                                       "torch.ones(4, device=self.device)"))};
  find(odd(finding), EvidenceKind::device_from, line(12, "Net.__init__", "        self.device = 'cpu'"), "self.device");
  wanted(finding).lineage = {derived(line(24, "Net.forward", "        x = self.linear(x)"), "cuda:0"),
                             by_module(moved(line(50, "main", "    net.cuda()", "net.cuda()"), "cuda:0"))};
  return finding;
}

TEST_CASE("An attribute that says a device does not follow the weights that the other operand comes from") {
  Finding finding = made_on_attribute();
  const Finding told = explained(finding);
  CHECK(told.rule == "made_without_device");
  CHECK(cause_line(told) == 25);
  CHECK_THAT(told.root_cause->why, Contains("on `self.device`, which model.py:12 has stored: the CPU") &&
                                       Contains("comes from weights that were moved to cuda:0 in model.py:50"));
  CHECK_THAT(told.fix->text, Contains("`x.device`"));

  SECTION("for a weight itself the store is the cause, but for what a forward makes") {
    wanted(finding).is = NameKind::parameter;
    CHECK(cause_line(explained(finding)) == 25);
    odd(finding).lineage.front().at.function = "Net.mask";
    CHECK(cause_line(explained(finding)) == 12);
  }
  SECTION("not where no module was moved") {
    wanted(finding).lineage.back().innermost = {};
    CHECK_THAT(explained(finding).root_cause->why, !Contains("comes from weights"));
  }
  SECTION("not where another function made it") {
    odd(finding).lineage.front().at.function = "Net.mask";
    CHECK_THAT(explained(finding).root_cause->why, !Contains("comes from weights"));
  }
}

TEST_CASE("What is made as an attribute says beside weights that are elsewhere follows those") {
  Finding finding = made_on_attribute();
  odd(finding).evidence.clear();  // nobody knows who stored it last
  wanted(finding).is = NameKind::parameter;
  const Finding told = explained(finding);
  CHECK(told.rule == "made_without_device");
  CHECK(cause_line(told) == 25);
  CHECK_THAT(told.root_cause->why, Contains("which an attribute says"));

  wanted(finding).is = NameKind::local;
  CHECK(cause_line(explained(finding)) == 0);
}

TEST_CASE("What functools.partial keeps is told of where it is given to that") {
  Finding finding = add("weights");
  odd(finding).lineage = {created(line(8, "balance", "    return torch.ones(4)", "torch.ones(4)"))};
  const Frame bound = line(44, "main", "    loss = partial(cross_entropy, weight=balance())");
  find(odd(finding), EvidenceKind::held_by_object, {}, "functools.partial.keywords['weight']");
  find(odd(finding), EvidenceKind::attribute_set_at, bound, "functools.partial.keywords['weight']");
  const Finding told = explained(finding);
  CHECK(told.rule == "kept_by_object");
  CHECK(cause_line(told) == 44);

  odd(finding).lineage.front().at = line(43, "main", "    weights = torch.ones(4)", "torch.ones(4)");
  CHECK(explained(finding).rule != "kept_by_object");
  CHECK(cause_line(explained(finding)) == 43);
}

TEST_CASE("A total that is a buffer is moved with its module") {
  Finding finding = add("loss");
  odd(finding).device = "cuda:0";
  odd(finding).shape = {std::vector<std::int64_t>{}};
  wanted(finding).device = "cpu";
  wanted(finding).name = "self.total";
  wanted(finding).shape = {std::vector<std::int64_t>{}};
  wanted(finding).is = NameKind::buffer;
  wanted(finding).lineage = {
      created(line(6, "Mean.__init__", "        self.register_buffer('total', torch.zeros(()))"))};
  CHECK(explained(finding).rule != "total_made_on_cpu");
  find(wanted(finding), EvidenceKind::module_bound_at, line(41, "main", "    metric = Mean()"), "metric");
  const Finding told = explained(finding);
  CHECK(told.rule == "total_made_on_cpu");
  CHECK(cause_line(told) == 41);
  CHECK_THAT(told.fix->text, Contains("Move `metric` with `.to('cuda:0')`"));
}

TEST_CASE("The call that made an object is the first beyond its constructors") {
  const Frame base = line(5, "Base.__init__", "        self.weight = torch.ones(4)");
  const Frame derived_class = line(9, "Net.__init__", "        super().__init__()");
  const Frame call = line(40, "main", "    net = Net()");
  const LineageStep made = called_by(created(base), {derived_class, call});
  CHECK(why::made_by_call(made).line == 40);
  const LineageStep alone = called_by(created(base), {derived_class});
  CHECK(&why::made_by_call(alone) == &alone.at);
  const LineageStep helper = called_by(created(line(3, "make", "    return torch.ones(4)")), {call});
  CHECK(&why::made_by_call(helper) == &helper.at);
  CHECK(why::makes_object(line(1, "Spec.__post_init__", "")));
  CHECK(why::makes_object(line(1, "Net.__init__.<locals>.<listcomp>", "")));
  CHECK_FALSE(why::makes_object(line(1, "<module>", "")));
}

TEST_CASE("A constructor keeps an argument where it stores a plain name") {
  const auto keeps = [](const char* function, const char* source) {
    return why::keeps_argument(line(1, function, source), "self.net");
  };
  CHECK(keeps("Loss.__init__", "        self.net = net"));
  CHECK(keeps("Loss.__init__", "        self.size, self.net = len(net), net"));
  CHECK_FALSE(keeps("Loss.__init__", "        self.net = net.eval()"));
  CHECK_FALSE(keeps("Loss.__init__", "        self.other = net"));
  CHECK_FALSE(keeps("Loss.attach", "        self.net = net"));
}

}  // namespace
}  // namespace devsan::report
