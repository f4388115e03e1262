// What a model, an attribute or a line that moves has put apart from what it works with, and what only looks so.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "load", "    rows = torch.randn(4)", "torch.randn(4)");

// `self.scale`, which the constructor of a model on two accelerators has put on cuda:0, meets `x` on cuda:1.
Finding placed() {
  Finding finding = add("self.scale", NameKind::attribute);
  const Frame put =
      line(12, "Net.__init__", "        self.scale = torch.ones(4, device=first)", "torch.ones(4, device=first)");
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {created(put, "cuda:0")};
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  find(odd(finding), EvidenceKind::attribute_set_at, put, "Net.scale");
  wanted(finding).device = "cuda:1";
  return finding;
}

TEST_CASE("A model puts what it keeps on one of its accelerators where its constructor names that") {
  Finding finding = placed();
  CHECK(cause_line(explained(finding)) == 12);
  CHECK(says(explained(finding), "what `Net` keeps itself, and puts on cuda:0 in this line"));

  SECTION("not where the line names none") {
    odd(finding).lineage.front().at = odd(finding).evidence.back().at =
        line(12, "Net.__init__", "        self.scale = torch.ones(4)", "torch.ones(4)");
    CHECK_FALSE(says(explained(finding), "keeps itself"));
  }
  SECTION("not where another method stores it") {
    odd(finding).lineage.front().at.function = odd(finding).evidence.back().at.function = "Net.reset";
    CHECK_FALSE(says(explained(finding), "keeps itself"));
  }
  SECTION("not where the model lies on one accelerator") {
    odd(finding).evidence.erase(odd(finding).evidence.begin());
    CHECK(explained(finding).rule != "inside_spread_model");
  }
  SECTION("not beside a weight") {
    wanted(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "inside_spread_model");
  }
}

// `mask`, which the failing function makes on an attribute that nobody is known to have stored.
Finding asked() {
  Finding finding = add("mask");
  odd(finding).lineage = {created(
      line(25, "Net.forward", "        mask = torch.ones(4, device=self.home)", "torch.ones(4, device=self.home)"))};
  wanted(finding).is = NameKind::parameter;
  return finding;
}

TEST_CASE("An attribute that is asked for a device beside weights that are elsewhere is asked in vain") {
  Finding finding = asked();
  CHECK(cause_line(explained(finding)) == 25);
  CHECK(says(explained(finding), "which an attribute says"));
  CHECK_THAT(explained(finding).fix->text, Contains("`x.device`, instead of from an attribute"));

  SECTION("also beside a plain attribute of a module") {
    wanted(finding).is = NameKind::attribute;
    CHECK_FALSE(explained(finding).root_cause);
    find(wanted(finding), EvidenceKind::held_by_module, {}, "Net.scale");
    CHECK(cause_line(explained(finding)) == 25);
  }
  SECTION("not where another function made it") {
    odd(finding).lineage.front().at.function = "Net.mask";
    CHECK_FALSE(explained(finding).root_cause);
  }
  SECTION("not where a variable says the device") {
    odd(finding).lineage.front().at =
        line(25, "Net.forward", "        mask = torch.ones(4, device=home)", "torch.ones(4, device=home)");
    CHECK_FALSE(explained(finding).root_cause);
  }
  SECTION("not where a property says it, which is told by its name") {
    find(odd(finding), EvidenceKind::device_property_at, line(8, "Net.home", "    def home(self):"), "self.home");
    CHECK_FALSE(says(explained(finding), "which an attribute says"));
  }
}

TEST_CASE("A module that goes by no name is to be moved in the line that makes it") {
  Finding finding = add("self.kernel", NameKind::buffer);
  odd(finding).lineage = {
      created(line(17, "Resample.__init__", "        self.register_buffer('kernel', torch.hann_window(5))"))};
  odd(finding).lineage.front().calls = {line(39, "Clips.load", "        wave = Resample(8, 4)(wave)")};
  CHECK(cause_line(explained(finding)) == 17);
  find(odd(finding), EvidenceKind::module_made_at, line(39, "Clips.load", "        wave = Resample(8, 4)(wave)"),
       "Resample");
  CHECK(cause_line(explained(finding)) == 39);
}

TEST_CASE("State of an optimizer that a helper brought to the host is told by the line that puts it back") {
  Finding finding = add("exp_avg of 0.weight", NameKind::attribute);
  odd(finding).lineage = {moved(line(15, "to_host", "        return value.detach().cpu()"), "cpu"),
                          derived(line(34, "Model.train", "        self.optimizer.step()"), "cuda:0")};
  odd(finding).lineage.front().calls = {line(20, "to_host", "            state[key] = to_host(state[key])"),
                                        line(40, "Model.save", "        torch.save(to_host(state), file)")};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "exp_avg of 0.weight");
  CHECK(rule_of(explained(finding)) == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 20);
  odd(finding).lineage.front().calls.erase(odd(finding).lineage.front().calls.begin());
  CHECK(cause_line(explained(finding)) == 15);
}

TEST_CASE("A loop that moves the parameters one by one is the cause of a buffer that stayed") {
  Finding finding = add("self.seen", NameKind::buffer);
  odd(finding).lineage = {created(line(14, "Metric.__init__", "        self.register_buffer('seen', torch.zeros(3))"))};
  odd(finding).lineage.front().calls = {line(60, "<module>", "model = Net()")};
  const Frame put = line(30, "Net.__init__", "        self.metric = Metric(3)");
  find(odd(finding), EvidenceKind::module_put_at, put, "Net.metric");
  find(odd(finding), EvidenceKind::weights_elsewhere, {}, "cuda:0 4 of 6 Net");
  find(odd(finding), EvidenceKind::module_bound_at, line(60, "<module>", "model = Net()"), "model");
  find(odd(finding), EvidenceKind::parameters_moved_at, line(61, "<module>", "for p in model.parameters():"), "Net");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 61);
  CHECK_THAT(told.fix->text, Contains("module.buffers()"));
  SECTION("not of one that was made after the loop") {
    odd(finding).lineage.front().calls.front().line = 70;
    CHECK(cause_line(explained(finding)) != 61);
  }
}

TEST_CASE("A copy of a module that was moved since, or whose original is in a library, is told of where it is bound") {
  Finding finding = add("self.target.weight", NameKind::parameter);
  const Frame copied = line(22, "Agent.__init__", "        self.target = copy.deepcopy(self.net)");
  odd(finding).lineage = {derived(copied), created(line(7, "Net.__init__", "        self.weight = make()"))};
  find(odd(finding), EvidenceKind::module_bound_at, copied, "self.target");
  const Frame original = line(21, "Agent.__init__", "        self.net = Net()");
  find(odd(finding), EvidenceKind::copy_of_module_at, original, "self.net");
  CHECK(cause_line(explained(finding)) == 21);

  SECTION("in a library") {
    odd(finding).evidence.back().at.library = true;
    CHECK(cause_line(explained(finding)) == 22);
  }
  SECTION("moved to the CPU") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(),
                                by_module(moved(line(23, "Agent.__init__", "        self.target.cpu()"), "cpu")));
    CHECK_FALSE(says(explained(finding), "a copy that"));
  }
}

// `x[rows.to(self.keys.device)]`, with `self.keys` on the CPU.
Finding moved_in_vain() {
  Finding finding = add("rows");
  odd(finding).lineage = {created(kMade)};
  finding.where =
      line(30, "Net.forward", "        return x[rows.to(self.keys.device)]", "x[rows.to(self.keys.device)]");
  find(odd(finding), EvidenceKind::stayed_at,
       line(30, "Net.forward", finding.where->source, "rows.to(self.keys.device)"));
  return finding;
}

TEST_CASE("A move in the failing line is asked in vain only where a value that is no weight asks another for it") {
  Finding finding = moved_in_vain();
  CHECK(explained(finding).rule == "move_did_nothing");

  SECTION("not what that very call has made") {
    odd(finding).lineage.front().at = odd(finding).evidence.front().at;
    CHECK(explained(finding).rule != "move_did_nothing");
  }
  SECTION("not in a library") {
    odd(finding).evidence.front().at.library = true;
    CHECK(explained(finding).rule != "move_did_nothing");
  }
  SECTION("not where it says the device in so many words") {
    finding.where->source = "        return x[rows.to('cpu')]";
    odd(finding).evidence.front().at = line(30, "Net.forward", finding.where->source, "rows.to('cpu')");
    CHECK(explained(finding).rule != "move_did_nothing");
  }
}

// `self.rank[name] = nn.Parameter(...)`, with `self.rank = {}` in the constructor.
Finding in_container() {
  Finding finding = add("weight");
  const Frame put = line(18, "Lora.add", "        self.rank[name] = nn.Parameter(torch.zeros(4))", "torch.zeros(4)");
  odd(finding).lineage = {created(put)};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Lora.rank['q']");
  find(odd(finding), EvidenceKind::entry_put_at, put, "self.rank");
  find(odd(finding), EvidenceKind::attribute_set_at, line(14, "Lora.__init__", "        self.rank = {}"), "Lora.rank");
  return finding;
}

TEST_CASE("A container of Parameters is the cause only where the module's constructor stores it") {
  Finding finding = in_container();
  CHECK(cause_line(explained(finding)) == 14);
  CHECK(says(explained(finding), "comes from a Parameter that model.py:18"));

  SECTION("also where only its making shows that it is one") {
    odd(finding).evidence.erase(odd(finding).evidence.begin() + 1);
    CHECK(cause_line(explained(finding)) == 14);
    odd(finding).lineage.front().at.source = "        self.rank[name] = torch.zeros(4)";
    CHECK_FALSE(says(explained(finding), "comes from a Parameter"));
  }
  SECTION("not where another method stores it") {
    odd(finding).evidence.back().at.function = "Lora.clear";
    CHECK_FALSE(says(explained(finding), "comes from a Parameter"));
  }
  SECTION("not another attribute, nor one of an object in between") {
    odd(finding).evidence.front().text = "Lora.ranks['q']";
    CHECK_FALSE(says(explained(finding), "comes from a Parameter"));
    odd(finding).evidence.front().text = "Lora.rank.weights['q']";
    CHECK_FALSE(says(explained(finding), "comes from a Parameter"));
  }
}

// `x.to(gpu)`, on cuda:1, meets weights that `model.cuda()` has moved to cuda:0.
Finding on_current_device() {
  Finding finding = add("x");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {moved(line(51, "main", "    x = x.to(gpu)", "x.to(gpu)"), "cuda:1")};
  wanted(finding).name = "self.weight";
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {by_module(moved(line(49, "main", "    model.cuda()", "model.cuda()"), "cuda:0"))};
  return finding;
}

TEST_CASE("A model on the current GPU is the mistake beside inputs that were taken to another one by its name") {
  Finding finding = on_current_device();
  const Finding told = explained(finding);
  CHECK(told.rule == "current_device");
  CHECK(cause_line(told) == 49);
  CHECK(says(told, "to the GPU that is current, cuda:0"));
  CHECK_THAT(told.fix->text, Contains("model.py:51"));

  SECTION("not where nothing says that it is a device") {
    odd(finding).lineage.front().at = line(51, "main", "    x = x.to(like)", "x.to(like)");
    CHECK(explained(finding).rule != "current_device");
  }
  SECTION("not where the inputs follow another value") {
    odd(finding).lineage.front().at = line(51, "main", "    x = x.to(y.device)", "x.to(y.device)");
    CHECK(explained(finding).rule != "current_device");
  }
  SECTION("not where both go to the current one") {
    odd(finding).lineage.front().at = line(51, "main", "    x = x.to('cuda')", "x.to('cuda')");
    CHECK(cause_line(explained(finding)) != 49);
  }
  SECTION("not where a number is given") {
    wanted(finding).lineage.front().at = line(49, "main", "    model.cuda(0)", "model.cuda(0)");
    CHECK(explained(finding).rule != "current_device");
  }
  SECTION("where the weight was moved by itself it is no model") {
    CHECK(says(told, "moves the model"));
    wanted(finding).lineage.front().innermost = {};
    CHECK_FALSE(says(explained(finding), "moves the model"));
  }
  SECTION("not where the input came with a module") {
    odd(finding).lineage.front() = by_module(odd(finding).lineage.front());
    CHECK(explained(finding).rule != "current_device");
  }
}

}  // namespace
}  // namespace devsan::report
