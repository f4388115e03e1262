// Rules about who owns a value, and so says where it is: plain objects, tables of the host, optimizers, libraries that
// place a model.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

// `x + mu`, a parameter that an object which is no module has made, and keeps in a dict.
Finding parameter_of_object() {
  Finding finding = add("self.unknown['mu']", NameKind::parameter);
  odd(finding).lineage = {derived(line(17, "Problem.__init__", "        start = torch.rand(1) * 2")),
                          created(line(17, "Problem.__init__", "        start = torch.rand(1) * 2"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Problem.unknown['mu']");
  find(odd(finding), EvidenceKind::attribute_set_at, line(15, "Problem.__init__", "        self.unknown = {}"),
       "Problem.unknown");
  find(odd(finding), EvidenceKind::entry_put_at,
       line(18, "Problem.__init__", "        self.unknown[name] = nn.Parameter(start)"), "self.unknown");
  return finding;
}

TEST_CASE("A parameter that a plain object keeps is told of where it is kept") {
  Finding finding = parameter_of_object();
  const Finding told = explained(finding);
  CHECK(told.rule == "kept_by_object");
  CHECK(cause_line(told) == 18);
  CHECK(says(told, "a parameter that an object of `Problem` keeps"));
  CHECK_THAT(told.fix->text, Contains("`nn.ParameterDict`") && Contains("make it on cuda:0 here"));

  SECTION("where the attribute is stored, if it is no entry of its own") {
    odd(finding).evidence.pop_back();
    CHECK(cause_line(explained(finding)) == 15);
  }
  SECTION("or is put there by another class") {
    odd(finding).evidence.back().at.function = "main";
    CHECK(cause_line(explained(finding)) == 15);
  }
  SECTION("not a weight of a module") {
    find(odd(finding), EvidenceKind::root_name, {}, "layer.weight");
    CHECK(rule_of(finding) == "module_not_moved");
  }
  SECTION("not a plain tensor, which its constructor makes") {
    odd(finding).is = NameKind::attribute;
    CHECK(rule_of(finding) == "made_without_device");
  }
}

// `spectrum * self.response`: a buffer of a module that an object keeps, which the model leads to.
Finding module_of_object() {
  Finding finding = add("self.response", NameKind::buffer);
  odd(finding).lineage = {derived(line(43, "Data.__init__", "        psd = 1 + torch.arange(length)")),
                          created(line(43, "Data.__init__", "        psd = 1 + torch.arange(length)"))};
  find(odd(finding), EvidenceKind::module_not_registered, {}, "Detector.trainer.data.augment");
  find(odd(finding), EvidenceKind::module_bound_at,
       line(44, "Data.__init__", "        self.augment = nn.Sequential(Flip(), Whiten(psd))"), "self.augment");
  return finding;
}

TEST_CASE("A module that a plain object keeps is told of where that keeps it") {
  Finding finding = module_of_object();
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_registered");
  CHECK(cause_line(told) == 44);
  CHECK(says(told, "The model has it as `Detector.trainer.data.augment`"));
  CHECK_THAT(told.fix->text, Contains("Keep `self.augment` as an attribute of a module that is moved; or move it to "
                                      "cuda:0 by itself"));

  SECTION("not by a name of another attribute") {
    odd(finding).evidence.back().text = "self.other";
    CHECK(cause_line(explained(finding)) == 43);
  }
  SECTION("not by a line that takes it over from a variable") {
    odd(finding).evidence.back().at.source = "        augment = nn.Sequential(Flip(), Whiten(psd))";
    CHECK(cause_line(explained(finding)) == 43);
  }
}

TEST_CASE("A module that its owner has placed itself is where somebody told that to place it") {
  Finding finding = add("layer.weight", NameKind::parameter);
  const Frame placed = line(17, "Loss.__init__", "        self.net = build().to(device)");
  const Frame call = line(33, "Unet.__init__", "        self.loss = Loss()", "Loss()");
  odd(finding).lineage = {created(line(16, "build", "    return nn.Conv2d(1, 2, 3)"))};
  find(odd(finding), EvidenceKind::module_not_registered, call, "Unet.loss.net");
  find(odd(finding), EvidenceKind::module_bound_at, placed, "self.net");
  find(odd(finding), EvidenceKind::stayed_at, placed);
  find(odd(finding), EvidenceKind::stay_from, call, "device=\"cpu\"");
  const Finding told = explained(finding);
  CHECK(told.rule == "move_did_nothing");
  CHECK(cause_line(told) == 33);
  CHECK(says(told, "this call does not give `device`"));

  odd(finding).evidence.pop_back();  // nobody knows who said it
  CHECK(rule_of(finding) == "module_not_registered");
}

// `table[ids]`, with the ids on an accelerator.
Finding picked(const std::string& source) {
  Finding finding = add("table");
  finding.where = line(30, "train", source, "table[ids]");
  finding.stack = {*finding.where};
  odd(finding).arg = "self";
  odd(finding).lineage = {created(line(8, "train", "    table = torch.randn(10, 4)"))};
  wanted(finding).arg = "indices[0]";
  wanted(finding).name = "ids";
  wanted(finding).lineage = {
      moved(line(12, "Loader.__iter__", "            yield ids.to(self.device)", "ids.to(self.device)"), "cuda:0"),
      derived(line(11, "Loader.__iter__", "            ids = seeds.unique()"))};
  return finding;
}

TEST_CASE("A table of which only what is picked goes to an accelerator wants its index on the host") {
  Finding finding = picked("    x = table[ids].to(device)");
  const Finding told = explained(finding);
  CHECK(told.rule == "index_not_brought");
  CHECK(cause_line(told) == 12);
  CHECK(told.root_cause->operand == "ids");
  CHECK_THAT(told.fix->text, Contains("`ids.to(table.device)`"));

  SECTION("where it picks, if the index was computed there") {
    wanted(finding).lineage.insert(wanted(finding).lineage.begin(),
                                   derived(line(20, "train", "    ids = found + 1"), "cuda:0"));
    CHECK(cause_line(explained(finding)) == 30);
    CHECK_THAT(explained(finding).fix->text, Contains("Bring the index to the CPU where it picks"));
  }
  SECTION("not what a module keeps, and should move with it") {
    find(odd(finding), EvidenceKind::held_by_module, {}, "Net.table");
    CHECK(rule_of(finding) != "index_not_brought");
  }
  SECTION("not where what is picked stays") {
    CHECK(rule_of(picked("    x = table[ids].float()")) != "index_not_brought");
  }
  SECTION("not where something else of the line is moved") {
    CHECK(rule_of(picked("    x = table[ids] + bias.to(device)")) != "index_not_brought");
  }
}

TEST_CASE("An index that was found in a copy of the table is brought back where it is found") {
  Finding finding = picked("        old = self.left[i]");
  const Frame made = line(14, "Cross.__init__", "        self.left = torch.zeros(1, 0)");
  const Frame copied = line(20, "Cross.sweep", "        values = self.oracle(cand.to(dev))", "cand.to(dev)");
  odd(finding).lineage = {created(made)};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Cross.left");
  wanted(finding).lineage = {derived(line(25, "Cross.pivots", "        return best % width"), "cuda:0"),
                             moved(copied, "cuda:0"), created(made)};
  find(wanted(finding), EvidenceKind::alone_on_device, {}, "cuda:0");
  const Finding told = explained(finding);
  CHECK(told.rule == "index_not_brought");
  CHECK(cause_line(told) == 25);
  CHECK(says(told, "from a copy that model.py:20 took there"));

  SECTION("not where other things are on the accelerator") {
    wanted(finding).evidence.clear();
    CHECK(rule_of(finding) != "index_not_brought");
  }
  SECTION("not where it began as something else") {
    wanted(finding).lineage.back() = created(line(9, "main", "x = torch.ones(4)"));
    CHECK(rule_of(finding) != "index_not_brought");
  }
}

TEST_CASE("What else the owner of an optimizer has moved is no state of it") {
  Finding finding = add("momentum of weight", NameKind::attribute);
  const Frame restored =
      line(35, "restore", "    optimizer.load_state_dict(state)", "optimizer.load_state_dict(state)");
  odd(finding).lineage = {created(line(27, "restore", "    tensors = load(payload)"))};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "momentum of weight");
  find(odd(finding), EvidenceKind::stayed_at, restored);
  find(odd(finding), EvidenceKind::sibling_moved, line(61, "train", "    loss = net(ids.to(device))"), ".ids");
  CHECK(rule_of(finding) == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 35);

  odd(finding).evidence.back().text = "['exp_avg']";
  CHECK(cause_line(explained(finding)) == 61);
}

// `y + x`, of a model that one line has had a library put on two accelerators.
Finding cut_model() {
  Finding finding = add("out");
  const Frame placed = line(67, "load", "    model = dispatch(model, budget)");
  finding.where->function = "Layer.forward";
  finding.stack = {*finding.where};
  odd(finding).device = "cuda:1";
  for (Operand* one : {&odd(finding), &wanted(finding)}) {
    LineageStep put = moved(placed, one->device.c_str());
    put.within = {library_line(300, "set_tensor", "        value = value.to(device)")};
    one->lineage = {derived(line(28, "Layer.forward", "        out = self.mlp(x)"), one->device.c_str()), put};
  }
  find(odd(finding), EvidenceKind::model_spread, {}, "Decoder");
  return finding;
}

TEST_CASE("A library that was told to place a model has cut a module of it in two") {
  Finding finding = cut_model();
  const Finding told = explained(finding);
  CHECK(told.rule == "crossed_over");
  CHECK(cause_line(told) == 67);
  CHECK(says(told, "cuts a `Layer` in two"));
  CHECK_THAT(told.fix->text, Contains("Keep all of a `Layer` on one device"));

  SECTION("not the model itself, which has to be in several parts") {
    finding.where->function = "Decoder.forward";
    CHECK(cause_line(explained(finding)) != 67);
  }
  SECTION("not where the program has placed the parts") {
    for (Operand* one : {&odd(finding), &wanted(finding)}) {
      one->lineage.back() = moved(line(67, "load", "        part.to(place)", "part.to(place)"), one->device.c_str());
    }
    CHECK(cause_line(explained(finding)) == 28);
  }
  SECTION("not where two lines have placed them") {
    wanted(finding).lineage.back().at.line = 68;
    CHECK(cause_line(explained(finding)) == 28);
    CHECK(says(explained(finding), "model.py:67 has a library put what it is computed with"));
  }
}

TEST_CASE("What a module's number is kept as could be a number of the host") {
  Finding finding = add("sims");
  std::swap(finding.operands[0].odd, finding.operands[1].odd);
  wanted(finding).name = "self.scale";
  wanted(finding).shape = std::vector<std::int64_t>();
  const Frame kept = line(22, "Ranker.__init__", "        self.scale = model.log_scale.exp()");
  const Frame whole = line(40, "main", "    ranker = Ranker(Clip().to(device))", "Clip().to(device)");
  wanted(finding).lineage = {derived(kept, "cuda:0"), by_module(moved(whole, "cuda:0")),
                             created(line(9, "Clip.__init__", "        self.log_scale = nn.Parameter(start)"))};
  find(wanted(finding), EvidenceKind::attribute_set_at, kept, "Ranker.scale");
  const Finding told = explained(finding);
  CHECK(told.rule == "cuda_scalar_was_python_float");
  CHECK(cause_line(told) == 22);
  CHECK_THAT(told.fix->text, Contains("call `.item()` on the result of this line"));

  SECTION("a model is not asked for its number") {
    wanted(finding).evidence.clear();
    CHECK(cause_line(explained(finding)) == 40);
    CHECK_THAT(explained(finding).fix->text, Contains("where it is taken from the model, with `.item()`"));
  }
  SECTION("nor is what it is an entry of") {
    wanted(finding).name = "self.scale[0]";
    CHECK(cause_line(explained(finding)) == 40);
  }
}

TEST_CASE("What was loaded to where it was saved is the mistake beside what the program brought to the host") {
  Finding finding = add("self.kept[3]", NameKind::attribute);
  odd(finding).lineage = {moved(line(54, "Metric.update", "        self.jobs.put(p.cpu())", "p.cpu()"), "cpu")};
  LineageStep load = moved(line(67, "job", "    state = torch.load(path)", "torch.load(path)"), "cuda:0");
  load.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/serialization.py";
  wanted(finding).name = "self.kept[0]";
  wanted(finding).lineage = {load};
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 67);
  CHECK(told.root_cause->operand == "self.kept[0]");
  CHECK(says(told, "model.py:54 brings what it meets to the CPU"));
  CHECK_THAT(told.fix->text, Contains("`torch.load(path, map_location='cpu')`"));

  SECTION("not where that follows another device") {
    odd(finding).lineage = {moved(line(54, "Metric.update", "        p = p.to(x.device)", "p.to(x.device)"), "cpu")};
    CHECK(rule_of(finding) != "loaded_elsewhere");
  }
  SECTION("not where the load says the device") {
    wanted(finding).lineage.front().at = line(67, "job", "    state = torch.load(path, map_location=device)");
    CHECK(rule_of(finding) != "loaded_elsewhere");
  }
}

TEST_CASE("The last line that says where a value is to be is told of, and not the move of the model before it") {
  Finding finding = add("a");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  wanted(finding).is = NameKind::parameter;
  const Frame model = line(34, "main", "    net = Net().to(local)", "Net().to(local)");
  odd(finding).lineage = {derived(line(29, "Ema.load", "        a = a.clone()", "a.clone()"), "cuda:0"),
                          by_module(moved(model, "cuda:0"))};
  CHECK(rule_of(finding) == "moved_away");
  find(odd(finding), EvidenceKind::stayed_at,
       line(30, "Ema.load", "        a = a.to(self.device)", "a.to(self.device)"));
  CHECK(rule_of(finding) == "move_did_nothing");
  CHECK(cause_line(explained(finding)) == 30);
}

TEST_CASE("An entry of what a library gives is moved when it is taken out") {
  Finding finding = add("self.best['a']", NameKind::attribute);
  LineageStep made = created(line(20, "fit", "        state = fabric.load(path)", "fabric.load(path)"));
  made.within = {library_line(90, "load", "    return torch.load(path, map_location=keep)")};
  odd(finding).lineage = {made};
  CHECK(rule_of(finding) == "made_without_device");
  CHECK_THAT(explained(finding).fix->text,
             Contains("Move what is taken out of it to cuda:0;") && !Contains("fabric.load"));
  odd(finding).name = "state";
  CHECK_THAT(explained(finding).fix->text, Contains("`state = fabric.load(path).to("));
}

TEST_CASE("A line of a library that uses a value is not told to move it") {
  Finding finding = add("noise");
  odd(finding).lineage = {
      moved(line(12, "prepare", "    noise = noise.to(self.device)", "noise.to(self.device)"), "cpu")};
  CHECK_THAT(explained(finding).fix->text, Contains("where it is used, in model.py:30: `noise.to(x.device)`"));
  finding.where = library_line(30, "add_noise", "        return x + noise");
  finding.stack = {*finding.where, line(14, "prepare", "    return scheduler.add_noise(x, noise)")};
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK_THAT(told.fix->text, Contains("before it is given to the library, in model.py:14"));
}

}  // namespace
}  // namespace devsan::report
