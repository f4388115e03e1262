// Rules about what is kept, named and handed on in containers: lists of modules, entries that wait on the host, batches
// of which some parts are moved, settings, and what a module makes anew.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

// `self.networks = [self.actor, self.critic]` in line 12, gone through in line 16; `target` is not among them.
Finding left_off() {
  Finding finding = add("self.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(5, "Critic.__init__", "        self.net = nn.Linear(4, 1)"))};
  odd(finding).lineage.front().calls = {line(10, "Agent.__init__", "        self.target = Critic()")};
  find(odd(finding), EvidenceKind::modules_moved_at, line(16, "Agent.to", "            net.to(device)"), "actor");
  find(odd(finding), EvidenceKind::modules_listed_at,
       line(12, "Agent.__init__", "        self.networks = [self.actor, self.critic]"), "target");
  return finding;
}

TEST_CASE("The list that names other modules to be moved is the cause for the one that it leaves out") {
  Finding finding = left_off();
  const Finding told = explained(finding);
  CHECK(told.rule == "left_off_list");
  CHECK(cause_line(told) == 12);
  CHECK(told.fix->text == "Name `target` here, too.");

  SECTION("not where the same function makes the module after the list") {
    odd(finding).lineage.front().calls = {line(14, "Agent.__init__", "        self.target = Critic()")};
    CHECK(explained(finding).rule != "left_off_list");
  }
  SECTION("not for a weight that was moved") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(20, "<module>", "net.cpu()"), "cpu"));
    CHECK(explained(finding).rule != "left_off_list");
  }
  SECTION("not for what is no weight") {
    odd(finding).is = NameKind::attribute;
    CHECK(explained(finding).rule != "left_off_list");
  }
}

TEST_CASE("What waits on the host is brought back by the only line that takes it out") {
  Finding finding = add("h");
  odd(finding).lineage = {moved(line(8, "Store.put", "        self.kept[name] = out.cpu()"), "cpu")};
  find(odd(finding), EvidenceKind::bound_at, line(28, "Net.forward", "        h = block(h)"), "h");
  SECTION("with the line") {
    find(odd(finding), EvidenceKind::taken_out_at, line(19, "Patch.hook", "        return self.store.kept[name]"),
         "self.kept");
    const Finding told = explained(finding);
    CHECK(told.rule == "taken_as_parked");
    CHECK(cause_line(told) == 19);
  }
  SECTION("without it by the variable's") {
    CHECK(cause_line(explained(finding)) == 28);
  }
}

TEST_CASE("A weight that was parked is brought back by the line that puts it into its module") {
  Finding finding = add("self.weight", NameKind::parameter);
  odd(finding).lineage = {moved(line(8, "Best.look", "        self.kept[name] = p.detach().cpu()"), "cpu")};
  find(odd(finding), EvidenceKind::weight_put_at, line(12, "Best.put_back", "            p.data = self.kept[name]"),
       "weight");
  const Finding told = explained(finding);
  CHECK(told.rule == "taken_as_parked");
  CHECK(cause_line(told) == 12);
}

TEST_CASE("What a function collects on the host in a container that it has just made was sent there by mistake") {
  Finding finding = add("real['a']", NameKind::attribute);
  odd(finding).lineage = {moved(line(8, "hook", "        kept[name] = out.detach().cpu()"), "cpu")};
  find(odd(finding), EvidenceKind::bound_at, line(20, "train", "    real, fake = {}, {}"), "real");
  find(odd(finding), EvidenceKind::given_at, line(24, "train", "    loss = distance(fake, real)"), "real");
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK(cause_line(told) == 8);
}

TEST_CASE("An object that is no tensor is not told to move itself where it is given beside what is moved") {
  Finding finding = add("prior.scale", NameKind::attribute);
  odd(finding).lineage = {created(line(37, "main", "    prior = Normal(0, torch.ones(3))", "torch.ones(3)"))};
  const std::string call = "elbo(model, x.to(device), prior)";
  find(odd(finding), EvidenceKind::given_at, line(44, "main", "    loss = " + call, call), "prior");
  CHECK(explained(finding).rule == "left_out_of_move");
  find(odd(finding), EvidenceKind::held_by_object, {}, "Normal.scale");
  const Finding told = explained(finding);
  CHECK(told.rule != "left_out_of_move");
  CHECK(cause_line(told) == 37);
}

TEST_CASE("What a line that goes through a batch lets pass was left out, whoever made it") {
  Finding finding = add("batch['action']");
  odd(finding).lineage = {created(line(12, "Buffer.sample", "            batch[name] = torch.tensor(column)"))};
  const std::string moves = "        return {k: v.to(d) if v.is_floating_point() else v for k, v in batch.items()}";
  find(odd(finding), EvidenceKind::sibling_moved, line(13, "Buffer.sample", moves), "['state']");
  CHECK(explained(finding).rule == "left_out_of_move");
  CHECK(cause_line(explained(finding)) == 13);

  SECTION("but not what is made in the function that puts it beside them") {
    odd(finding).evidence.front().at.function = "move";
    find(odd(finding), EvidenceKind::put_beside_at, line(26, "Buffer.sample", "    return Batch(move(x), mask)"),
         "mask");
    CHECK(explained(finding).rule == "made_without_device");
    CHECK(cause_line(explained(finding)) == 12);
    odd(finding).lineage.back().at.function = "load";
    CHECK(explained(finding).rule == "left_out_of_move");
    CHECK(cause_line(explained(finding)) == 26);
  }
  SECTION("but not what it makes by itself") {
    odd(finding).evidence.front().at.source = "        state = state.to(d)";
    CHECK(explained(finding).rule == "made_without_device");
  }
}

TEST_CASE("The line that takes the default device away is the cause for what is made after it") {
  Finding finding = add("x");
  odd(finding).lineage = {created(line(40, "residual", "    x = torch.rand(3)"))};
  wanted(finding).lineage = {created(line(20, "<module>", "w = torch.rand(3)"), "cuda:0")};
  find(odd(finding), EvidenceKind::default_device_cleared_at,
       line(9, "on_host", "        torch.set_default_device(None)"));
  const Finding told = explained(finding);
  CHECK(told.rule == "default_device_set");
  CHECK(cause_line(told) == 9);

  SECTION("not where the other one names its device") {
    wanted(finding).lineage.front().at = line(20, "<module>", "w = torch.rand(3, device='cuda')");
    CHECK(explained(finding).rule != "default_device_set");
  }
}

TEST_CASE("A method that makes a weight anew is the cause where its module was moved before") {
  Finding finding = add("self.counts", NameKind::buffer);
  odd(finding).lineage = {created(line(18, "Metric.reset", "        self.counts = torch.zeros(4)", "torch.zeros(4)"))};
  find(odd(finding), EvidenceKind::attribute_set_at, odd(finding).lineage.front().at, "Metric.counts");
  find(odd(finding), EvidenceKind::module_bound_at, line(35, "<module>", "metric = Metric().to(dev)"), "metric");
  const Finding told = explained(finding);
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 18);
  CHECK_THAT(told.fix->text, Contains("torch.zeros(4, device='cuda:0')"));

  SECTION("also by a name that it was given") {
    odd(finding).evidence.erase(odd(finding).evidence.begin());
    CHECK(cause_line(explained(finding)) == 35);
    odd(finding).lineage.front().at.source = "            setattr(self, name, torch.zeros(4))";
    CHECK(cause_line(explained(finding)) == 18);
  }
  SECTION("not where nothing says that it was moved") {
    odd(finding).evidence.back().at.source = "metric = Metric()";
    CHECK(cause_line(explained(finding)) == 35);
  }
  SECTION("not where the constructor called it") {
    odd(finding).lineage.front().calls = {line(12, "Metric.__init__", "        self.reset()")};
    CHECK(cause_line(explained(finding)) == 35);
  }
  SECTION("by what says how it is made, where that is another line") {
    find(odd(finding), EvidenceKind::device_from, line(16, "Metric.reset", "        kw = dict(dtype=d)"), "**kw");
    CHECK(cause_line(explained(finding)) == 16);
  }
}

TEST_CASE("Merged settings decide the device, whatever attribute keeps it") {
  Finding finding = add("z");
  odd(finding).lineage = {created(line(24, "Noise.__call__", "        return torch.randn(n, device=self.device)"))};
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {moved(line(67, "main", "    net.to(device)"), "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, line(21, "Noise.__init__", "        self.device = device"),
       "self.device");
  CHECK(cause_line(explained(finding)) == 21);
  find(odd(finding), EvidenceKind::device_from, line(29, "Trainer.__init__", "        cfg = {**user, **STANDARD}"),
       "cfg['device']");
  CHECK(cause_line(explained(finding)) == 29);
}

TEST_CASE("A weight that a line puts into a module which is elsewhere has to be moved there") {
  Finding finding = add("self.down", NameKind::parameter);
  odd(finding).lineage = {
      derived(line(50, "<module>", "state = {n: torch.rand_like(v) for n, v in saved.items()}")),
      moved(line(22, "saved", "    return {n: p.cpu() for n, p in model.named_parameters()}"), "cpu")};
  find(odd(finding), EvidenceKind::weight_put_at, line(32, "activate", "        setattr(m, leaf, nn.Parameter(v))"),
       "down");
  CHECK(explained(finding).rule != "weight_put_as_it_is");
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  CHECK(explained(finding).rule == "weight_put_as_it_is");
  CHECK(cause_line(explained(finding)) == 32);
}

TEST_CASE("A weight is put as it is into a module that was brought to an accelerator when it was made") {
  Finding finding = add("net.weight", NameKind::parameter);
  odd(finding).lineage = {derived(line(12, "draw", "        yield middle + noise"))};
  find(odd(finding), EvidenceKind::weight_put_at, line(22, "put_on", "        w.data, rest = rest[:n], rest[n:]"),
       "weight");
  CHECK(explained(finding).rule != "weight_put_as_it_is");
  find(odd(finding), EvidenceKind::module_bound_at, line(40, "main", "    net = Net().to(device)"), "net");
  const Finding told = explained(finding);
  CHECK(told.rule == "weight_put_as_it_is");
  CHECK(cause_line(told) == 22);

  SECTION("not where that line moves nothing") {
    odd(finding).evidence.back().at.source = "    net = Net(size)";
    CHECK(explained(finding).rule != "weight_put_as_it_is");
  }
}

TEST_CASE("What waits on the host may outnumber the weight that it meets") {
  Finding finding = add("self.sign", NameKind::parameter);
  odd(finding).device = "cuda:0";
  wanted(finding).device = "cpu";
  wanted(finding).lineage = {derived(line(14, "Archive.take", "        return torch.stack(pages)")),
                             moved(line(8, "Archive.keep", "        self.kept[k] = page.cpu()"), "cpu")};
  const Finding told = explained(finding);
  CHECK(told.rule == "taken_as_parked");
  CHECK(cause_line(told) == 14);

  SECTION("not another value than a weight") {
    odd(finding).is = NameKind::local;
    CHECK(explained(finding).rule != "taken_as_parked");
  }
}

TEST_CASE("A line that makes an entry of what was read to the host a buffer has to move it") {
  Finding finding = add("self.center", NameKind::buffer);
  const std::string load = "    saved = torch.load(path, map_location=\"cpu\")";
  odd(finding).lineage = {created(line(33, "resume", load, "torch.load(path, map_location=\"cpu\")"))};
  CHECK(cause_line(explained(finding)) == 33);
  find(odd(finding), EvidenceKind::weight_put_at, line(36, "resume", "    loss.center = saved[\"center\"]"), "center");
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 36);
  odd(finding).evidence.back().at.function = "<module>";
  CHECK(cause_line(explained(finding)) == 36);
  odd(finding).evidence.back().at.function = "Loss.__init__";
  CHECK(cause_line(explained(finding)) == 33);
}

TEST_CASE("Who keeps what was read to the host as it came has to move it") {
  Finding finding = add("self.shadow['w']", NameKind::attribute);
  const std::string load = "    saved = torch.load(path, map_location=\"cpu\")";
  odd(finding).lineage = {derived(line(24, "Averages.restore", "        self.shadow = {n: v.clone() for n, v in s}")),
                          created(line(33, "run", load, "torch.load(path, map_location=\"cpu\")"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Averages.shadow['w']");
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 24);

  SECTION("not where the file was read to where it was saved from") {
    odd(finding).lineage.back().at = line(33, "run", "    saved = torch.load(path)");
    CHECK(cause_line(explained(finding)) == 33);
  }
  SECTION("nor where the function that reads it keeps it") {
    odd(finding).lineage.front().at.function = "run";
    CHECK(cause_line(explained(finding)) == 33);
  }
}

// A weight of `loss`, which a line takes out of a container that line 21 has made it for.
Finding taken_loss(const char* source) {
  Finding finding = add("self.filters", NameKind::buffer);
  odd(finding).lineage = {
      created(line(8, "Texture.__init__", "        self.register_buffer('filters', torch.ones(4))"))};
  find(odd(finding), EvidenceKind::module_bound_at, line(33, "Trainer.step", source), "loss");
  find(odd(finding), EvidenceKind::module_made_at, line(21, "Trainer.__init__", "            'texture': Texture(),"),
       "Texture");
  return finding;
}

TEST_CASE("A module that is an entry of a container is to be moved where it is made") {
  for (const char* source :
       {"        for name, loss in self.losses.items():", "        return sum(loss(x) for loss in self.losses)",
        "        loss = self.losses['texture']", "        loss = self.losses.get(name, None)"}) {
    const Finding told = explained(taken_loss(source));
    CAPTURE(source);
    CHECK(told.rule == "module_not_moved");
    CHECK(cause_line(told) == 21);
    CHECK(says(told, "model.py:33 takes it as it is"));
  }
  SECTION("not where the line that names it makes it, in whatever way") {
    for (const char* source : {"        loss = build(texture=True)", "        total = sum(f(k) for k in loss)"}) {
      CAPTURE(source);
      CHECK(cause_line(explained(taken_loss(source))) == 33);
    }
  }
}

}  // namespace
TEST_CASE("What a function returns as it is, beside what it moves, is told of at the return") {
  Finding finding = add("ratios");
  const Frame call = line(25, "<module>", "(states, rewards), ratios = memory.draw(8, device)");
  const Frame gives = line(18, "Memory.draw", "        return [p.to(onto) for p in parts], ratios", "p.to(onto)");
  odd(finding).lineage = {derived(line(17, "Memory.draw", "        ratios = ratios / ratios.mean()")),
                          created(line(9, "Memory.__init__", "        self.old = torch.full((n,), 0.25)"))};
  find(odd(finding), EvidenceKind::bound_at, call, "ratios");
  LineageStep move = moved(line(18, "Memory.draw.<locals>.<listcomp>", gives.source, "p.to(onto)"), "cuda:0");
  move.calls = {gives, call};
  wanted(finding).lineage = {derived(line(27, "<module>", "error = rewards - critic(states)")), move};
  const Finding told = explained(finding);
  CHECK(told.rule == "left_out_of_move");
  CHECK(cause_line(told) == 18);
  CHECK_THAT(told.fix->text, Contains("`ratios.to('cuda:0')`"));

  SECTION("but not where it returns something made of it") {
    wanted(finding).lineage[1].at.source = "        return [p.to(onto) for p in parts], ratios.sum()";
    CHECK(explained(finding).rule != "left_out_of_move");
  }
  SECTION("or where another call gave what was moved") {
    wanted(finding).lineage[1].calls[1] = line(24, "<module>", "(states, rewards), _ = memory.draw(8, device)");
    CHECK(explained(finding).rule != "left_out_of_move");
  }
}

}  // namespace devsan::report
