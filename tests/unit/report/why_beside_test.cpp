// Rules that look at what stands beside a value: another call of the same function, the parts of a model on several
// accelerators, the lines of a function that work on the host.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "load", "    rows = torch.randn(4)", "torch.randn(4)");

// `encode(images.to(dev))` in line 41, and `encode(images)` in line 44, which is running.
Finding given_twice() {
  Finding finding = add("images");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), EvidenceKind::copied_away, line(41, "main", "    a = encode(images.to(dev))", "images.to(dev)"),
       "cuda:0");
  find(odd(finding), EvidenceKind::given_at, line(44, "main", "    b = encode(images)", "encode(images)"), "images");
  return finding;
}

TEST_CASE("What is moved for one call of a function is to be moved for the other") {
  Finding finding = given_twice();
  Evidence& copy = odd(finding).evidence.front();
  Evidence& given = odd(finding).evidence.back();
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_for_other_call");
  CHECK(cause_line(told) == 44);
  CHECK_THAT(told.root_cause->why,
             Contains("gives `images` to `encode` as it is, on the CPU; model.py:41 gives it a copy on cuda:0"));
  CHECK_THAT(told.fix->text, Contains("`images.to('cuda:0')`"));

  SECTION("also where an attribute is called") {
    copy.at = line(41, "main", "    a = self.net.encode(images.to(dev))", "images.to(dev)");
    given.at = line(44, "main", "    b = self.net.encode(images)", "self.net.encode(images)");
    CHECK(explained(finding).rule == "moved_for_other_call");
  }
  SECTION("also by a name, or in a call that goes on over several lines") {
    copy.at = line(41, "main", "    a = encode(4, image=images.to(dev))", "images.to(dev)");
    CHECK(cause_line(explained(finding)) == 44);
    given.at = line(44, "main", "    b = encode(4,");
    given.at.end_line = 45;
    CHECK(cause_line(explained(finding)) == 44);
    copy.at = line(41, "main", "    a = encode(4, size == images.to(dev))", "images.to(dev)");
    CHECK(explained(finding).rule != "moved_for_other_call");
  }
  SECTION("also where something is computed of it before it is missed") {
    copy.kind = EvidenceKind::source_copied_at;
    CHECK(explained(finding).rule != "moved_for_other_call");
    given.kind = EvidenceKind::source_given_at;
    CHECK(explained(finding).rule == "moved_for_other_call");
  }
  SECTION("not where another function is called") {
    given.at = line(44, "main", "    b = encode_all(images)", "encode_all(images)");
    CHECK(explained(finding).rule != "moved_for_other_call");
  }
  SECTION("not where the copy gets a name, or is one of several arguments") {
    copy.at = line(41, "main", "    moved = images.to(dev)", "images.to(dev)");
    CHECK(explained(finding).rule != "moved_for_other_call");
    copy.at = line(41, "main", "    a = encode(size, images.to(dev))", "images.to(dev)");
    CHECK(explained(finding).rule != "moved_for_other_call");
    copy.at = line(41, "main", "    a = encode[images.to(dev)]", "images.to(dev)");
    CHECK(explained(finding).rule != "moved_for_other_call");
  }
  SECTION("not where the copy is somewhere else than where it is missed") {
    copy.text = "cuda:1";
    CHECK(explained(finding).rule != "moved_for_other_call");
  }
  SECTION("not in one line, which gives both") {
    given.at = line(41, "main", "    b = encode(images)", "encode(images)");
    CHECK(explained(finding).rule != "moved_for_other_call");
  }
}

// `NAME`, which came to `Net` on cuda:0, meets `x` on cuda:1 in a method of `Net`.
Finding in_spread_model(const char* name) {
  Finding finding = add(name);
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {moved(line(50, "<module>", "rows = rows.to('cuda:0')"), "cuda:0"), created(kMade)};
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  wanted(finding).device = "cuda:1";
  finding.stack = {*finding.where, line(60, "<module>", "net(rows)")};
  return finding;
}

TEST_CASE("What a model takes over by a name is brought over where it gets the name") {
  Finding finding = in_spread_model("mask");
  CHECK(cause_line(explained(finding)) == 30);
  find(odd(finding), EvidenceKind::bound_at, line(25, "Net.forward", "        mask = masks['causal']"), "mask");
  CHECK(explained(finding).rule == "inside_spread_model");
  CHECK(cause_line(explained(finding)) == 25);

  SECTION("not where a loop gives it") {
    odd(finding).evidence.back().at.source = "        for mask in masks:";
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not where another function does") {
    odd(finding).evidence.back().at.function = "Net.masks";
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("What a model's other method makes for all of its parts is brought over where that is made") {
  Finding finding = in_spread_model("mask");
  odd(finding).lineage = {
      created(line(15, "Net.causal", "        return torch.ones(4, device=d)", "torch.ones(4, device=d)"), "cuda:0")};
  CHECK(explained(finding).rule == "inside_spread_model");
  CHECK(cause_line(explained(finding)) == 15);
  odd(finding).lineage.front().at.function = "causal";
  CHECK(cause_line(explained(finding)) == 30);
}

TEST_CASE("What meets each part of what a loop goes through is brought to that") {
  Finding finding = in_spread_model("past");
  find(odd(finding), EvidenceKind::bound_at, line(25, "Net.forward", "        for past in self.cache:"), "past");
  find(wanted(finding), EvidenceKind::bound_at, line(27, "Net.forward", "            x = states[k]"), "x");
  const Finding told = explained(finding);
  CHECK(told.rule == "inside_spread_model");
  CHECK(cause_line(told) == 27);
  CHECK(told.root_cause->operand == "x");
  CHECK_THAT(told.root_cause->why, Contains("`past`, of which each may be on another accelerator"));
  CHECK_THAT(told.fix->text, Contains("`x = states[k].to(past.device)`"));

  SECTION("not what got its name before the loop") {
    wanted(finding).evidence.front().at.line = 24;
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not where no loop gave the part") {
    odd(finding).evidence.back().at.source = "        past = self.cache[0]";
    CHECK(cause_line(explained(finding)) == 25);
  }
}

TEST_CASE("What a model itself has put on one of its accelerators is told of where it did") {
  Finding finding = in_spread_model("self.scale");
  odd(finding).is = NameKind::attribute;
  const Frame put =
      line(12, "Net.__init__", "        self.scale = torch.ones(4, device='cuda:0')", "torch.ones(4, device='cuda:0')");
  odd(finding).lineage = {created(put, "cuda:0")};
  find(odd(finding), EvidenceKind::attribute_set_at, put, "Net.scale");
  const Finding told = explained(finding);
  CHECK(told.rule == "inside_spread_model");
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why, Contains("what `Net` keeps itself, and puts on cuda:0 in this line"));
  CHECK_THAT(told.fix->text, Contains("`self.scale.to(x.device)`"));

  SECTION("not where another object keeps it") {
    odd(finding).evidence.back().text = "Cache.scale";
    CHECK_THAT(explained(finding).root_cause->why, !Contains("keeps itself"));
  }
  SECTION("not where it was made elsewhere") {
    odd(finding).evidence.back().at = line(13, "Net.__init__", "        self.scale = scale");
    CHECK_THAT(explained(finding).root_cause->why, !Contains("keeps itself"));
  }
}

// `evaluate` brings what it works with to the host; `grid`, of another function, is on cuda:0.
Finding host_work() {
  Finding finding = add("scores");
  finding.where->function = "evaluate";
  finding.stack = {*finding.where};
  odd(finding).lineage = {moved(line(27, "evaluate", "    scores = out.cpu()", "out.cpu()"), "cpu"),
                          created(kMade, "cuda:0")};
  find(odd(finding), EvidenceKind::host_work, {}, "3");
  wanted(finding).name = "grid";
  wanted(finding).lineage = {created(
      line(9, "make_grid", "    return torch.arange(4, device='cuda')", "torch.arange(4, device='cuda')"), "cuda:0")};
  return finding;
}

TEST_CASE("In a function that works on the host what another one makes on an accelerator is the mistake") {
  Finding finding = host_work();
  const Finding told = explained(finding);
  CHECK(told.rule == "alone_on_accelerator");
  CHECK(cause_line(told) == 9);
  CHECK(told.root_cause->operand == "grid");
  CHECK_THAT(told.root_cause->why, Contains("`evaluate`, which uses it, brings what it works with to the host, in 3 "));

  SECTION("not where it brings one value alone") {
    odd(finding).evidence.clear();
    CHECK(explained(finding).rule != "alone_on_accelerator");
  }
  SECTION("not where another function brought the value") {
    odd(finding).lineage.front().at.function = "predict";
    CHECK(explained(finding).rule != "alone_on_accelerator");
  }
  SECTION("not where the other one came from elsewhere, or follows a default") {
    LineageStep& made = wanted(finding).lineage.front();
    made.at = line(9, "make_grid", "    return torch.arange(4)", "torch.arange(4)");
    CHECK(explained(finding).rule != "alone_on_accelerator");
    made = moved(line(9, "make_grid", "    return grid.to('cuda')", "grid.to('cuda')"), "cuda:0");
    CHECK(explained(finding).rule != "alone_on_accelerator");
  }
  SECTION("not a weight") {
    wanted(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "alone_on_accelerator");
  }
}

// `value`, a number on cuda:0, is given to NumPy.
Finding for_numpy() {
  Finding finding = add("value");
  finding.message = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.";
  odd(finding).arg = "self";
  odd(finding).device = "cuda:0";
  odd(finding).shape = {std::vector<std::int64_t>{}};
  odd(finding).lineage = {derived(line(12, "measure", "    value = (a == b).mean()"), "cuda:0")};
  wanted(finding).arg = "numpy";
  wanted(finding).device = "cpu";
  wanted(finding).device_argument = true;
  return finding;
}

TEST_CASE("Of what a line collects for NumPy, what it does not bring over beside the rest is the mistake") {
  Finding finding = for_numpy();
  const Frame collected = line(28, "Net.forward", "        value = [loss.item(), error.mean()]");
  odd(finding).lineage.front().at = collected;
  find(odd(finding), EvidenceKind::bound_at, collected, "value");
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.root_cause->why, Contains("collects it as it is, and brings what it collects beside it"));

  SECTION("not where it brings nothing") {
    odd(finding).evidence.front().at.source = "        value = [loss, error.mean()]";
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not what another line computed") {
    odd(finding).lineage.front().at.line = 27;
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("A number that a function has computed and handed to what keeps it for NumPy is brought over there") {
  Finding finding = for_numpy();
  find(odd(finding), EvidenceKind::used_once_at, line(13, "measure", "    meter.update(value)"), "value");
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 13);
  CHECK_THAT(told.root_cause->why, Contains("This line hands `value` on as it is"));

  SECTION("not where the function returns it") {
    odd(finding).evidence.front().at.source = "    return value";
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not where the function still runs") {
    finding.stack.push_back(line(13, "measure", "    meter.update(value)"));
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not more than a number") {
    odd(finding).shape = {std::vector<std::int64_t>{4}};
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("A number that one call alone has kept for NumPy is brought over in that call") {
  Finding finding = for_numpy();
  find(odd(finding), EvidenceKind::given_to_keep_at, line(17, "train", "    meter.add(loss)"), "add");
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 17);
  CHECK_THAT(told.root_cause->why, Contains("This call of `add` has it kept as it is"));

  SECTION("not where the failing function does") {
    odd(finding).evidence.front().at.function = "Net.forward";
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not more than a number") {
    odd(finding).shape = {std::vector<std::int64_t>{4}};
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("A move that the failing line makes in vain asks the wrong one for the device") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(kMade)};
  finding.where =
      line(30, "Net.forward", "        return x[rows.to(self.keys.device)]", "x[rows.to(self.keys.device)]");
  const Frame asked = line(30, "Net.forward", finding.where->source, "rows.to(self.keys.device)");
  find(odd(finding), EvidenceKind::stayed_at, asked);
  const Finding told = explained(finding);
  CHECK(told.rule == "move_did_nothing");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.root_cause->why, Contains("`rows.to(self.keys.device)` leaves `rows` where it is, on the CPU"));
  CHECK_THAT(told.fix->text, Contains("`.to(x.device)`"));

  SECTION("not where it names no other value") {
    odd(finding).evidence.front().at = line(30, "Net.forward", "        return x[rows.to(where)]", "rows.to(where)");
    CHECK(explained(finding).rule != "move_did_nothing");
  }
  SECTION("not a weight") {
    odd(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "move_did_nothing");
  }
}

// `torch.rand(4, generator=gen)`, with a generator on cuda:0.
Finding drawn() {
  Finding finding = add("gen");
  finding.op = "aten::rand.generator";
  finding.where =
      line(30, "Net.forward", "        noise = torch.rand(4, generator=gen)", "torch.rand(4, generator=gen)");
  finding.stack = {*finding.where};
  finding.operands.erase(finding.operands.begin());
  Operand& gen = finding.operands.front();
  gen.device = "cuda:0";
  gen.generator = true;
  gen.shape.reset();
  find(gen, EvidenceKind::bound_at, line(11, "main", "    gen = torch.Generator('cuda')"), "gen");
  return finding;
}

TEST_CASE("What is drawn from a generator on an accelerator is to be drawn there") {
  Finding finding = drawn();
  const Finding told = explained(finding);
  CHECK(told.rule == "generator_elsewhere");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("`torch.rand(4, generator=gen, device=gen.device)`"));

  SECTION("not where the line names a device") {
    finding.where = line(30, "Net.forward", "        noise = torch.rand(4, generator=gen, device=d)",
                         "torch.rand(4, generator=gen, device=d)");
    CHECK(cause_line(explained(finding)) == 11);
  }
  SECTION("not what a function of torch's draws") {
    finding.stack.insert(finding.stack.begin(), library_line(3, "random_split", "    torch.randperm(n, generator=g)"));
    CHECK(cause_line(explained(finding)) == 11);
  }
  SECTION("not where the generator is on the CPU") {
    finding.operands.front().device = "cpu";
    CHECK(cause_line(explained(finding)) == 11);
  }
}

TEST_CASE("A generator that a with statement gives is made in the function that it calls") {
  Finding finding = drawn();
  finding.operands.front().device = "cpu";
  find(finding.operands.front(), EvidenceKind::generator_yielded_at,
       line(7, "seeded", "    yield torch.Generator().manual_seed(0)"), "seeded");
  CHECK(explained(finding).rule == "generator_elsewhere");
  CHECK(cause_line(explained(finding)) == 7);
}

TEST_CASE("The branch that leaves the numbers where another takes them to the generator is the cause") {
  Finding finding = drawn();
  finding.operands[0].device = "cpu";
  Operand weights;
  weights.name = "w";
  weights.shape = {4};
  weights.device = "cuda:0";
  weights.lineage = {derived(line(24, "Sampler.weights", "            w = softmax(best)"), "cuda:0")};
  find(weights, EvidenceKind::branch_moves_at,
       line(21, "Sampler.weights", "            w = softmax(scores).to(generator.device)"), "w");
  finding.operands.push_back(weights);
  CHECK(cause_line(explained(finding)) == 24);
  finding.operands.back().evidence.front().at.source = "            w = softmax(scores).to(self.device)";
  CHECK(cause_line(explained(finding)) != 24);
}

}  // namespace
}  // namespace devsan::report
