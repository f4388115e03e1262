// Rules about parts: of a model that lies on several devices, of an optimizer that was restored, of what a loop moves.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A module that the condition of a moving loop does not take is told of at that condition") {
  Finding finding = add("self.ranks + 1");
  odd(finding).is = NameKind::temporary;
  odd(finding).lineage = {derived(line(30, "Net.forward", "        return x + self.ranks + 1")),
                          created(line(9, "Net.__init__", "        self.ranks = nn.Parameter(torch.zeros(1))"))};
  find(odd(finding), EvidenceKind::modules_moved_at, line(41, "wrap", "            part.to(old.weight.device)"), "svd");
  find(odd(finding), EvidenceKind::modules_chosen_at, line(40, "wrap", "        if \"svd_\" in path:"), "ranks");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_out_by_condition");
  CHECK(cause_line(told) == 40);
  CHECK(says(told, "`ranks`, which `self.ranks + 1` is made of"));

  SECTION("not where it was moved since") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(50, "main", "net.cpu()"), "cpu"));
    CHECK(rule_of(finding) != "left_out_by_condition");
  }
}

// `torch.cat(scores)`, of what each layer of a model on two GPUs has returned.
Finding collected() {
  const Frame made = line(12, "Layer.forward", "        scores = self.router(x)");
  Finding finding = add("scores[1]");
  finding.where = line(30, "balance", "    joined = torch.cat(scores)", "torch.cat(scores)");
  finding.stack = {*finding.where};
  wanted(finding).arg = "tensors[0]";
  wanted(finding).name = "scores[0]";
  wanted(finding).lineage = {derived(made, "cuda:0")};
  odd(finding).arg = "tensors[1]";
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {derived(made, "cuda:1")};
  return finding;
}

TEST_CASE("Entries that one line has computed for parts on several GPUs are brought together where they are joined") {
  Finding finding = collected();
  const Finding told = explained(finding);
  CHECK(told.rule == "gathered_from_devices");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("`.to(scores[0].device)`"));

  SECTION("not where lines of their own have computed them") {
    odd(finding).lineage.front().at.line = 15;
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
  SECTION("not where that line has made one of them") {
    odd(finding).lineage.front().how = trace::How::created;
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
}

// `total += gain`, a number on cuda:0, in line 30 of `Opt.step`.
Finding total_of(std::vector<LineageStep> history) {
  Finding finding = add("gain");
  finding.op = "aten::add_.Tensor";
  finding.where = line(30, "Opt.step", "            total += gain");
  finding.stack = {*finding.where};
  odd(finding).device = "cuda:0";
  odd(finding).shape = std::vector<std::int64_t>{};
  odd(finding).lineage = {derived(line(29, "Opt.step", "            gain = p.grad.sum()"), "cuda:0")};
  wanted(finding).name = "total";
  wanted(finding).device = "cpu";
  wanted(finding).shape = std::vector<std::int64_t>{1};
  wanted(finding).lineage = std::move(history);
  return finding;
}

TEST_CASE("A total that an optimizer restored with its groups is brought over where it is taken out") {
  LineageStep copied = derived(line(60, "main", "opt.load_state_dict(saved)"));
  copied.op = "at::storage_copy";
  const Frame load = line(55, "main", "saved = torch.load(path, map_location=\"cpu\")");
  Finding finding = total_of({copied, created(load)});
  find(wanted(finding), EvidenceKind::bound_at, line(22, "Opt.step", "        total = self.running(group)"), "total");
  CHECK(explained(finding).rule == "total_made_on_cpu");
  CHECK(cause_line(explained(finding)) == 22);
  CHECK_THAT(explained(finding).fix->text, Contains("group[\"params\"][0].device"));

  SECTION("in the function that hands it back") {
    find(wanted(finding), EvidenceKind::handed_back_at, line(12, "Opt.running", "        return group[\"total\"]"));
    CHECK(cause_line(explained(finding)) == 12);
  }
  SECTION("not where something else has copied it") {
    wanted(finding).lineage.front().at.source = "kept = copy.deepcopy(saved)";
    CHECK(cause_line(explained(finding)) == 55);
  }
}

TEST_CASE("A total that begins with a weight on the CPU is brought over where its function takes that") {
  const Frame first = line(28, "Opt.step", "        total += own.sum()");
  Finding finding = total_of({derived(first), derived(line(8, "Net.factors", "        return self.w.abs()")),
                              created(line(4, "Net.__init__", "        self.w = nn.Parameter(torch.ones(3))"))});
  CHECK(explained(finding).rule == "total_made_on_cpu");
  CHECK(cause_line(explained(finding)) == 28);

  SECTION("by the line that gives it a name") {
    find(wanted(finding), EvidenceKind::computed_from, line(27, "Opt.step", "        own = net.factors()"), "own");
    CHECK(cause_line(explained(finding)) == 27);
  }
  SECTION("not where another function has begun it") {
    wanted(finding).lineage.erase(wanted(finding).lineage.begin(), wanted(finding).lineage.begin() + 2);
    CHECK(cause_line(explained(finding)) == 4);
  }
}

TEST_CASE("What a forward sets anew in each call is no forgotten buffer") {
  Finding finding = add("width");
  odd(finding).lineage = {created(line(5, "nothing", "    return torch.ones(shape)", "torch.ones(shape)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Scaler.width");
  find(odd(finding), EvidenceKind::attribute_set_at, line(12, "Scaler.forward", "        self.width = rule(x)"),
       "Scaler.width");
  CHECK(explained(finding).rule == "made_without_device");
  CHECK(cause_line(explained(finding)) == 5);

  SECTION("but what a constructor sets is one") {
    odd(finding).evidence.back().at.function = "Scaler.__init__";
    CHECK(explained(finding).rule == "attribute_not_buffer");
  }
}

TEST_CASE("A line that asks whether a tensor is on a GPU, and not on which, is the cause") {
  const Frame asks = line(25, "Tracker.step", "        where = \"cuda\" if self.low.is_cuda else \"cpu\"");
  Finding finding = add("smallest");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  odd(finding).lineage = {moved(line(26, "Tracker.step", "        smallest = torch.tensor(1e-6, device=where)",
                                     "torch.tensor(1e-6, device=where)"),
                                "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, asks, "where");
  const Finding told = explained(finding);
  CHECK(told.rule == "current_device");
  CHECK(cause_line(told) == 25);

  SECTION("not one that takes its device") {
    odd(finding).evidence.back().at.source = "        where = self.low.device";
    CHECK(cause_line(explained(finding)) != 25);
  }
}

TEST_CASE("An input that was left on the CPU is the cause of a gradient that comes back from a GPU") {
  Finding finding = add("");
  finding.op = "autograd::IntegrateBackward";
  odd(finding).arg = "gradients[0]";
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {derived(line(20, "Integrate.backward", "        return torch.cat(g)"), "cuda:0")};
  wanted(finding).arg = "inputs[0]";
  wanted(finding).device = "cpu";
  wanted(finding).device_argument = true;
  wanted(finding).lineage = {derived(line(9, "Flow.__init__", "        self.flat = torch.cat(weights)"))};
  CHECK(explained(finding).rule == "gradient_elsewhere");
  CHECK(cause_line(explained(finding)) == 9);

  SECTION("not where nothing is known of the input") {
    wanted(finding).lineage.clear();
    CHECK(cause_line(explained(finding)) != 9);
  }
  SECTION("nor where the gradient is the one that was left") {
    wanted(finding).device = "cuda:0";
    odd(finding).device = "cpu";
    odd(finding).lineage = {created(line(19, "Integrate.backward", "        g = torch.zeros(3)"))};
    CHECK(cause_line(explained(finding)) == 19);
  }
}

TEST_CASE("The entry of one part is brought over where it is taken out of what was made for all parts") {
  const Frame made = line(6, "Cache.__init__.<locals>.<listcomp>",
                          "        self.states = [torch.zeros(n, device=device) for _ in range(layers)]",
                          "torch.zeros(n, device=device)");
  Finding finding = add("state");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  const Frame taken = line(28, "Net.forward", "        state = cache.states[self.index].clone()");
  odd(finding).lineage = {derived(taken, "cuda:0"), created(made, "cuda:0")};
  find(odd(finding), EvidenceKind::bound_at, taken, "state");
  find(odd(finding), EvidenceKind::model_spread, {}, "Decoder");
  CHECK(explained(finding).rule == "taken_for_other_device");
  CHECK(cause_line(explained(finding)) == 28);

  SECTION("not of a model that lies on one device") {
    odd(finding).evidence.pop_back();
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
  SECTION("not of what was made alone") {
    odd(finding).lineage.back().at.source = "        self.states = torch.zeros(n, device=device)";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
}

TEST_CASE("A function that moves what came with a value has to move that, too") {
  Finding finding = add("count");
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  odd(finding).lineage = {derived(line(40, "take", "    return sum(b.sum() for b in group)"), "cuda:0"),
                          created(line(52, "stream", "        ids = torch.randint(9, (4,), device=dev)"), "cuda:0")};
  find(odd(finding), EvidenceKind::crossing_at, line(18, "Model.forward", "        return loss(x, count)"), "count");
  find(odd(finding), EvidenceKind::crossing_beside_at, line(17, "Model.forward", "        x = x.to('cuda:1')"), "x");
  find(odd(finding), EvidenceKind::made_alike_moved_at, line(28, "Net.forward", "        y = y.to(x.device)"));
  find(odd(finding), EvidenceKind::model_spread, {}, "Model");
  CHECK(explained(finding).rule == "crossed_over");
  CHECK(cause_line(explained(finding)) == 30);

  SECTION("not where another function moves it") {
    odd(finding).evidence[2].at.function = "Other.forward";
    CHECK(cause_line(explained(finding)) == 17);
  }
}

TEST_CASE("What was given to a device for storage is brought back where one of two lines takes it out") {
  const Frame parked = line(12, "Tracker.mark", "        kept[at] = mask.to(self.state[\"storage\"])");
  Finding finding = add("mask");
  odd(finding).lineage = {created(line(50, "main", "tracker.mark(1, torch.ones(4))", "torch.ones(4)"))};
  find(odd(finding), EvidenceKind::stayed_at, parked);
  find(odd(finding), EvidenceKind::sibling_moved, line(5, "Tracker.__init__", "        movie = movie.to(dev)"),
       "movie");
  find(odd(finding), EvidenceKind::perhaps_bound_at, line(26, "Net.forward", "            mask = kept[at]"), "mask");
  find(odd(finding), EvidenceKind::perhaps_bound_at, line(28, "Net.forward", "            mask = self.infer(x)"),
       "mask");
  CHECK(explained(finding).rule == "taken_as_parked");
  CHECK(cause_line(explained(finding)) == 26);

  SECTION("not where the device is none for storage") {
    odd(finding).evidence.front().at.source = "        kept[at] = mask.to(self.device)";
    CHECK(rule_of(finding) != "taken_as_parked");
  }
}

TEST_CASE("A flag that a call gives as False is told of at that call") {
  const Frame stored = line(16, "Loss.__init__", "        self.kernel = kernel.cuda() if gpu else kernel");
  Finding finding = add("self.kernel");
  odd(finding).is = NameKind::attribute;
  odd(finding).lineage = {derived(line(15, "Loss.__init__", "        kernel = torch.outer(taps, taps)")),
                          created(line(14, "Loss.__init__", "        taps = torch.arange(3.0)"))};
  odd(finding).lineage.back().calls = {line(35, "Net.__init__", "        self.loss = Loss(3, gpu=False)")};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Loss.kernel");
  find(odd(finding), EvidenceKind::attribute_set_at, stored, "Loss.kernel");
  CHECK(explained(finding).rule == "told_not_to_move");
  CHECK(cause_line(explained(finding)) == 35);

  SECTION("not where the call gives another value") {
    odd(finding).lineage.back().calls.front().source = "        self.loss = Loss(3, gpu=use_gpu)";
    CHECK(explained(finding).rule == "attribute_not_buffer");
  }
  SECTION("not where no flag decides") {
    odd(finding).evidence.back().at.source = "        self.kernel = kernel";
    CHECK(explained(finding).rule == "attribute_not_buffer");
  }
}

TEST_CASE("Weights that somebody has moved from beside their input are told of at that move") {
  LineageStep away = moved(line(15, "Probe.__init__", "        self.net = net.cuda()"), "cuda:0");
  away.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
  Finding finding = add("x");
  wanted(finding).name = "self.stem.weight";
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {away, moved(line(45, "train", "    net = Net().to(device)"), "cuda:1"),
                             created(line(35, "Net.__init__", "        self.stem = nn.Conv2d(1, 6, 3)"))};
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {created(line(48, "train", "    x = torch.rand(4, device=device)"), "cuda:1")};
  CHECK(explained(finding).rule == "moved_in_place");
  CHECK(cause_line(explained(finding)) == 15);

  SECTION("not where the input was made on a device that an attribute says") {
    find(odd(finding), EvidenceKind::device_from, line(14, "Sampler.__init__", "        self.device = device"),
         "self.device");
    CHECK(rule_of(finding) != "moved_in_place");
  }
  SECTION("not where they have always been there") {
    wanted(finding).lineage.erase(wanted(finding).lineage.begin() + 1);
    CHECK(rule_of(finding) != "moved_in_place");
  }
}

TEST_CASE("What an optimizer's own load_state_dict leaves where it was loaded is told of there") {
  LineageStep copied = derived(line(32, "Kron.load_state_dict", "        super().load_state_dict(state)"));
  copied.op = "at::storage_copy";
  Finding finding = add("self.mat");
  odd(finding).is = NameKind::attribute;
  odd(finding).lineage = {copied, created(line(60, "main", "saved = torch.load(f, map_location=\"cpu\")"))};
  CHECK(explained(finding).rule == "loaded_elsewhere");
  CHECK(cause_line(explained(finding)) == 32);

  SECTION("not where the program calls torch's own") {
    odd(finding).lineage.front().at.source = "opt.load_state_dict(saved)";
    CHECK(cause_line(explained(finding)) == 60);
  }
}

TEST_CASE("What a method keeps where its input came is told of where it is kept") {
  Finding finding = add("self.shift");
  finding.where->function = "Net.forward";
  odd(finding).is = NameKind::attribute;
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cuda:1";
  odd(finding).lineage = {derived(line(20, "Net.lay_out", "        return places.max() + 1"), "cuda:0"),
                          moved(line(40, "main", "ids = torch.tensor(words, device=first)"), "cuda:0")};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.shift");
  find(odd(finding), EvidenceKind::attribute_set_at, line(26, "Net.forward", "            self.shift = shift"),
       "Net.shift");
  CHECK(explained(finding).rule == "taken_for_other_device");
  CHECK(cause_line(explained(finding)) == 26);

  SECTION("not what a constructor keeps") {
    odd(finding).evidence.back().at.function = "Net.__init__";
    CHECK(rule_of(finding) != "taken_for_other_device");
  }
}

TEST_CASE("What a loop takes out of an attribute that is filled once is told of at the condition") {
  const Frame guard = line(17, "Priors.prepare", "        if self.templates is not None:");
  Finding finding = add("base");
  odd(finding).lineage = {derived(line(23, "Priors.prepare", "            self.templates.append(torch.stack(both))")),
                          created(line(19, "Priors.prepare", "        root = torch.tensor(self.aspects, device=device)",
                                       "torch.tensor(self.aspects, device=device)"))};
  find(odd(finding), EvidenceKind::cache_guard_at, guard, "if self.templates is not None:");
  find(odd(finding), EvidenceKind::bound_at,
       line(28, "Net.forward", "        for fmap, base in zip(levels, self.templates):"), "base");
  CHECK(explained(finding).rule == "kept_from_first_call");
  CHECK(cause_line(explained(finding)) == 17);

  SECTION("not of another attribute") {
    odd(finding).evidence.back().at.source = "        for fmap, base in zip(levels, self.templates_of(x)):";
    CHECK(cause_line(explained(finding)) != 17);
  }
}

TEST_CASE("A branch that hands on as it is what is no tensor is told of beside the one that moves") {
  Finding finding = add("waves[0]");
  odd(finding).lineage = {created(line(51, "main", "waves = [torch.zeros(4), torch.ones(4)]"))};
  find(odd(finding), EvidenceKind::sibling_moved, line(41, "replay", "                ready[name] = value.to(where)"),
       "['keep']");
  find(odd(finding), EvidenceKind::put_as_it_is_at, line(43, "replay", "                ready[name] = value"),
       "['keep']");
  CHECK(explained(finding).rule == "left_out_of_move");
  CHECK(cause_line(explained(finding)) == 43);
}

TEST_CASE("What a constructor makes itself, and keeps, is told of where it is made") {
  Finding finding = add("self.levels");
  odd(finding).is = NameKind::attribute;
  odd(finding).lineage = {created(line(21, "Recall.__init__", "            levels = torch.linspace(0, 1, 9)"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Recall.levels");
  find(odd(finding), EvidenceKind::attribute_set_at, line(22, "Recall.__init__", "        self.levels = levels"),
       "Recall.levels");
  CHECK(cause_line(explained(finding)) == 21);

  SECTION("and what it was given, where it is kept") {
    odd(finding).lineage.front().at.function = "main";
    CHECK(explained(finding).rule == "kept_by_object");
    CHECK(cause_line(explained(finding)) == 22);
  }
}

TEST_CASE("Of several assignments the one that takes an entry of a batch is told where data is not moved") {
  LineageStep drawn = derived(line(25, "Net.forward", "        for batch in DataLoader(tails):"));
  drawn.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py";
  Finding finding = add("past");
  odd(finding).lineage = {drawn, created(line(57, "main", "passengers = torch.arange(60.0)"))};
  find(odd(finding), EvidenceKind::perhaps_bound_at, line(26, "Net.forward", "            past = batch[0]"), "past");
  find(odd(finding), EvidenceKind::perhaps_bound_at,
       line(28, "Net.forward", "                past = torch.cat([past, step])[:, 1:]"), "past");
  CHECK(explained(finding).rule == "data_not_moved");
  CHECK(cause_line(explained(finding)) == 26);
}

TEST_CASE("Another object that moves a network tells the owner of its device nothing") {
  LineageStep move = moved(line(35, "Trainer.setup", "        self.network.to(self.device)"), "cuda:0");
  move.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
  Finding finding = add("x");
  finding.where->function = "Tool.grade";
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {move, created(line(17, "Tool.__init__", "        self.network = nn.Linear(6, 3)"))};
  odd(finding).lineage = {created(line(22, "Tool.grade", "        x = torch.as_tensor(rows, device=self.device)",
                                       "torch.as_tensor(rows, device=self.device)"))};
  find(odd(finding), EvidenceKind::device_from, line(16, "Tool.__init__", "        self.device = torch.device(device)"),
       "self.device");
  CHECK(explained(finding).rule == "made_without_device");
  CHECK(cause_line(explained(finding)) == 35);

  SECTION("but a function of the program is nobody else") {
    wanted(finding).lineage.front().at.function = "serve";
    CHECK(cause_line(explained(finding)) == 16);
  }
}

TEST_CASE("What a call computed on the host of what it brought there is brought back by that call") {
  Finding finding = add("jac");
  odd(finding).lineage = {created(
      line(19, "Rig.run", "        return torch.from_numpy(np.stack(cols))", "torch.from_numpy(np.stack(cols))"))};
  odd(finding).lineage.back().calls = {
      line(29, "Net.backward", "        jac = ctx.rig.run(theta.cpu().numpy())", "ctx.rig.run(theta.cpu().numpy())")};
  CHECK(explained(finding).rule == "numpy_round_trip");
  CHECK(cause_line(explained(finding)) == 29);

  SECTION("not where the call is given what was on the host") {
    odd(finding).lineage.back().calls.front().source = "        jac = ctx.rig.run(angles)";
    CHECK(cause_line(explained(finding)) == 19);
  }
}

TEST_CASE("What is moved to an accelerator beside a model on the CPU, and is alone there, is told of at that move") {
  Finding finding = add("outputs");
  wanted(finding).name = "box";
  wanted(finding).lineage = {moved(line(28, "Net.forward", "        box = box.cuda()", "box.cuda()"), "cuda:0"),
                             created(line(27, "Net.forward", "        box = torch.from_numpy(rows)"))};
  LineageStep made = created(line(8, "Detector.__init__", "        self.box = nn.Linear(4, 8)"));
  made.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py";
  odd(finding).lineage = {derived(line(12, "Detector.forward", "        return self.box(x)")), made};
  find(wanted(finding), EvidenceKind::alone_on_device, {}, "cuda:0");
  CHECK(explained(finding).rule == "alone_on_accelerator");
  CHECK(cause_line(explained(finding)) == 28);

  SECTION("not where others are there, too") {
    wanted(finding).evidence.clear();
    CHECK(rule_of(finding) != "alone_on_accelerator");
  }
}

TEST_CASE("One line that joins several made without a device moves them all") {
  Finding finding = add("scale");
  odd(finding).lineage = {
      derived(line(28, "Net.forward", "        scale = torch.stack([width, height], dim=1)",
                   "torch.stack([width, height], dim=1)")),
      created(line(27, "Net.forward", "        width = torch.tensor(widths)", "torch.tensor(widths)"))};
  odd(finding).lineage.front().op = "aten::stack";
  CHECK(explained(finding).rule == "made_without_device");
  CHECK(cause_line(explained(finding)) == 28);

  SECTION("not of one variable alone") {
    odd(finding).lineage.front().at.source = "        scale = torch.stack([width, width], dim=1)";
    CHECK(cause_line(explained(finding)) == 27);
  }
  SECTION("not of what another function has made") {
    odd(finding).lineage.back().at.function = "sizes";
    CHECK(cause_line(explained(finding)) == 27);
  }
}

TEST_CASE("What a helper without a device has made is moved by the object that takes it") {
  const Frame taken = line(40, "ZeroShot.embed", "        tokens = tokenize(texts)");
  Finding finding = add("labels");
  odd(finding).lineage = {derived(line(19, "Session.run", "        return feed @ weight")),
                          created(line(23, "tokenize", "    out = torch.zeros(len(texts), length)"))};
  find(odd(finding), EvidenceKind::taken_from_maker_at, taken, "self.device");
  const Finding told = explained(finding);
  CHECK(told.rule == "taken_from_maker");
  CHECK(cause_line(told) == 40);
  CHECK_THAT(told.fix->text, Contains("`tokens = tokenize(texts).to(self.device)`"));

  SECTION("not where it was moved since") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(44, "main", "labels = labels.cpu()"), "cpu"));
    CHECK(rule_of(finding) != "taken_from_maker");
  }
  SECTION("not where what it meets is on the CPU, too") {
    wanted(finding).device = "cpu";
    CHECK(rule_of(finding) != "taken_from_maker");
  }
}

}  // namespace
}  // namespace devsan::report
