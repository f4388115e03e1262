// Rules about ways that values take through helpers, caches and constructors: each with a program that it is about, and
// with some that look like it and are not.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "main", "    x = torch.randn(4)", "torch.randn(4)");

// A tuple in a batch that a helper handed back as it came.
Finding passed_over() {
  Finding finding = add("values");
  odd(finding).lineage = {created(line(3, "collate", "    values = torch.cat(bags)", "torch.cat(bags)"))};
  find(odd(finding), EvidenceKind::sibling_moved,
       line(8, "to_device", "        return data.to(device)", "data.to(device)"), "['dense']");
  find(odd(finding), EvidenceKind::rebuilt_at, line(9, "to_device", "    if isinstance(data, dict):"), "dict");
  return finding;
}

TEST_CASE("A helper that knows no branch for a type is the cause where it hands back what it was given") {
  Finding finding = passed_over();
  CHECK(cause_line(explained(finding)) == 9);
  find(odd(finding), EvidenceKind::passed_over_at, line(13, "to_device", "    return data"), "tuple");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_out_of_move");
  CHECK(cause_line(told) == 13);
  CHECK_THAT(told.root_cause->why, Contains("no branch for") && Contains("a `tuple` with `values` in it") &&
                                       Contains("model.py:8 moves `['dense']`"));
  CHECK_THAT(told.fix->text, Contains("Handle `tuple` before this line"));
}

TEST_CASE("What the helper's own function makes, and what a library hands back, is no matter of its branches") {
  Finding finding = passed_over();
  find(odd(finding), EvidenceKind::passed_over_at, library_line(13, "to_device", "    return data"), "tuple");
  CHECK(cause_line(explained(finding)) == 9);
  odd(finding).evidence.back().at = line(13, "to_device", "    return data");
  odd(finding).lineage = {created(line(7, "to_device", "    values = torch.zeros(3)", "torch.zeros(3)"))};
  CHECK(cause_line(explained(finding)) == 7);
}

// `grid` of a cache, made by an earlier call for cuda:0; this one is for cuda:1.
Finding cached() {
  Finding finding = add("grid");
  wanted(finding).device = "cuda:1";
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {
      derived(line(9, "base_grid", "        grids[key] = torch.stack([x, y])", "torch.stack([x, y])"), "cuda:0"),
      created(
          line(8, "base_grid", "        x = torch.arange(width, device=device)", "torch.arange(width, device=device)"),
          "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, line(20, "Net.forward", "    grid = base_grid(4, 4, x.device)"),
       "device");
  find(odd(finding), EvidenceKind::cache_key_at, line(6, "base_grid", "    key = (height, width)"), "grids");
  return finding;
}

TEST_CASE("The key of a cache that leaves the device out is the cause") {
  const Finding told = explained(cached());
  CHECK(told.rule == "keyed_without_device");
  CHECK(cause_line(told) == 6);
  CHECK_THAT(told.root_cause->why, Contains("from `grids`, where an earlier call put it, made on cuda:0") &&
                                       Contains("a call for cuda:1 finds the same entry"));
  CHECK_THAT(told.fix->text, Contains("a part of the key: `key = (height, width, device)`"));
}

TEST_CASE("The key of a cache is told in words where its line cannot be written") {
  Finding finding = cached();
  odd(finding).evidence.back().at = line(9, "base_grid", "        grids[(height, width)] = torch.stack([x, y])");
  CHECK(cause_line(explained(finding)) == 9);
  CHECK_THAT(explained(finding).fix->text, Contains("Make the device a part of the key; or move it where it is used"));
}

TEST_CASE("A cache filled on the CPU is told of only where this call asks for the other device") {
  Finding finding = cached();
  odd(finding).device = "cpu";
  for (LineageStep& step : odd(finding).lineage) step.device = "cpu";
  CHECK(explained(finding).rule == "keyed_without_device");
  // The call says `y.device`: for all that is known, that is the CPU now, too.
  odd(finding).evidence.front().at.source = "    grid = base_grid(4, 4, y.device)";
  CHECK(explained(finding).rule != "keyed_without_device");
}

TEST_CASE("A cache that a call which has ended filled is told of though the failing function knows nothing of it") {
  Finding finding = cached();
  odd(finding).device = "cpu";
  for (LineageStep& step : odd(finding).lineage) step.device = "cpu";
  odd(finding).lineage.back().calls = {line(61, "dry_run", "    net(zeros)")};
  odd(finding).evidence.front().at = line(52, "Anchors.forward", "    return base_grid(4, 4, maps[0].device)");
  CHECK(explained(finding).rule == "keyed_without_device");
  odd(finding).lineage.back().calls.clear();
  CHECK(explained(finding).rule != "keyed_without_device");
}

TEST_CASE("A cache that the failing function filled is told of only where another call of that did") {
  Finding finding = cached();
  odd(finding).device = "cpu";
  for (LineageStep& step : odd(finding).lineage) step.device = "cpu";
  const Frame asked = line(8, finding.where->function.c_str(), "    grid = base_grid(4, 4, other.device)");
  odd(finding).evidence.front().at = asked;
  finding.stack = {*finding.where, line(71, "<module>", "net(frames)")};
  odd(finding).lineage.back().calls = {asked, line(71, "<module>", "net(frames)")};
  CHECK(explained(finding).rule != "keyed_without_device");
  odd(finding).lineage.back().calls.back().line = 70;
  CHECK(explained(finding).rule == "keyed_without_device");
}

TEST_CASE("A cache whose entries are made like a value asks for the device of that") {
  Finding finding = cached();
  odd(finding).device = "cpu";
  for (LineageStep& step : odd(finding).lineage) step.device = "cpu";
  odd(finding).lineage.back().calls = {line(61, "dry_run", "    net(zeros)")};
  odd(finding).lineage.back().at = line(8, "base_grid", "        x = torch.arange(width, device=like.device)",
                                        "torch.arange(width, device=like.device)");
  odd(finding).evidence.front() = {EvidenceKind::device_from,
                                   line(52, "Anchors.forward", "    return base_grid(4, 4, like=maps)"), "like"};
  CHECK(explained(finding).rule == "keyed_without_device");
  odd(finding).evidence.front().text = "sizes";
  CHECK(explained(finding).rule != "keyed_without_device");
}

TEST_CASE("A cache whose entries are made on one device whatever is asked for needs no other key") {
  Finding finding = cached();
  odd(finding).lineage.back().at = line(8, "base_grid", "        x = torch.arange(width, device=\"cuda:0\")",
                                        "torch.arange(width, device=\"cuda:0\")");
  CHECK(explained(finding).rule != "keyed_without_device");
  odd(finding).lineage.back().at = line(8, "base_grid", "        x = torch.arange(width)", "torch.arange(width)");
  CHECK(explained(finding).rule != "keyed_without_device");
}

TEST_CASE("A key with the type of the device is the cause where the devices are of one type") {
  Finding finding = cached();
  odd(finding).evidence.back() = {EvidenceKind::cache_key_type_at,
                                  line(6, "base_grid", "    key = (height, width, x.device.type)  # fast"), "grids"};
  const Finding told = explained(finding);
  CHECK(told.rule == "keyed_without_device");
  CHECK(cause_line(told) == 6);
  CHECK_THAT(told.root_cause->why, Contains("says which type of device it is for, and not which one, so a call"));
  CHECK_THAT(told.fix->text,
             Contains("Make the device with its index a part of the key: `key = (height, width, x.device)`"));
  odd(finding).device = "cpu";
  for (LineageStep& step : odd(finding).lineage) step.device = "cpu";
  CHECK(explained(finding).rule != "keyed_without_device");
}

TEST_CASE("An entry that a move of its own line left where the first caller was is the key's mistake") {
  const Frame put =
      line(9, "base_grid", "        grids[key] = table(height, width).to(x)", "table(height, width).to(x)");
  Finding finding = cached();
  odd(finding).device = "cpu";
  odd(finding).lineage = {created(line(3, "table", "    return torch.arange(height)", "torch.arange(height)"))};
  odd(finding).evidence.erase(odd(finding).evidence.begin());
  find(odd(finding), EvidenceKind::stayed_at, put);
  find(odd(finding), EvidenceKind::entry_put_at, put, "grids");
  finding.where->function = "base_grid";
  const Finding told = explained(finding);
  CHECK(told.rule == "keyed_without_device");
  CHECK(cause_line(told) == 6);

  SECTION("not where the move is another line's") {
    odd(finding).evidence.back().at.line = 12;
    CHECK(explained(finding).rule != "keyed_without_device");
  }
  SECTION("not where it follows something else than what the entry meets") {
    for (Evidence& evidence : odd(finding).evidence) {
      if (evidence.at.line == 9) evidence.at.source = "        grids[key] = table(height, width).to(y)";
    }
    CHECK(explained(finding).rule != "keyed_without_device");
  }
}

TEST_CASE("What a constructor stores by an index is no entry of a cache") {
  Finding finding = cached();
  odd(finding).evidence.back().at = line(6, "Cache.__init__", "        self.keys[index] = made");
  CHECK(explained(finding).rule != "keyed_without_device");
}

// `cache = Cache(size, ids.device)`; the constructor makes the buffers of all layers there.
Finding kept_by_constructor() {
  Finding finding = add("keys");
  wanted(finding).device = "cuda:1";
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {created(line(12, "Cache.__init__", "        self.keys.append(torch.zeros(4, device=device))",
                                       "torch.zeros(4, device=device)"),
                                  "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, line(40, "generate", "    cache = Cache(size, ids.device)"), "device");
  return finding;
}

TEST_CASE("A constructor that makes all on the device of one value is the cause where layers are on several") {
  const Finding told = explained(kept_by_constructor());
  CHECK(cause_line(told) == 12);
  CHECK_THAT(told.root_cause->why,
             Contains("on `device`, which is cuda:0, the device of another value in model.py:40"));
  CHECK_THAT(told.fix->text, Contains("here cuda:1"));
}

TEST_CASE("The call that gives the device is the cause for a setting, for the CPU, and for what is made in each call") {
  Finding finding = kept_by_constructor();
  SECTION("a setting") {
    odd(finding).evidence.front().at.source = "    cache = Cache(size, args.device)";
  }
  SECTION("an attribute that is no device") {
    odd(finding).evidence.front().at.source = "    cache = Cache(size, model.device_map)";
  }
  SECTION("the CPU") {
    odd(finding).device = odd(finding).lineage.front().device = "cpu";
  }
  SECTION("made in each call") {
    odd(finding).lineage.front().at.function = "make_cache";
  }
  CHECK(cause_line(explained(finding)) == 40);
}

// `counts`, which the failing function makes on the GPU, meets CPU tensors.
Finding alone() {
  Finding finding = add("cells");
  odd(finding).lineage = {created(kMade)};
  wanted(finding).name = "counts";
  wanted(finding).lineage = {created(
      line(27, "Net.forward", "    counts = torch.zeros(4, device=\"cuda\")", "torch.zeros(4, device=\"cuda\")"),
      "cuda:0")};
  find(wanted(finding), EvidenceKind::locals_elsewhere, {}, "cpu 7 of 8");
  return finding;
}

TEST_CASE("The one tensor that a function makes on an accelerator beside CPU tensors is the cause") {
  const Finding told = explained(alone());
  CHECK(told.rule == "alone_on_accelerator");
  CHECK(cause_line(told) == 27);
  CHECK(told.root_cause->operand == "counts");
  CHECK_THAT(told.root_cause->why, Contains("7 of 8 tensors that this function works with are on the CPU"));
  CHECK_THAT(told.fix->text, Contains("`cells.device`"));
}

TEST_CASE("A tensor made on the CPU and moved in the same line is as new") {
  Finding finding = alone();
  const Frame made = line(27, "Net.forward", "    counts = torch.zeros(4).cuda()", "torch.zeros(4).cuda()");
  wanted(finding).lineage = {moved(made, "cuda:0"), created(made)};
  CHECK(cause_line(explained(finding)) == 27);
}

TEST_CASE("Nothing is alone on an accelerator that was data before, follows others, or is a weight") {
  Finding finding = alone();
  Frame& made = wanted(finding).lineage.front().at;
  SECTION("too few others are known") {
    wanted(finding).evidence.clear();
  }
  SECTION("it was moved there from elsewhere") {
    wanted(finding).lineage = {moved(line(27, "Net.forward", "    x = data.cuda()", "data.cuda()"), "cuda:0"),
                               created(line(4, "load", "    return torch.rand(3)", "torch.rand(3)"))};
  }
  SECTION("it follows another value") {
    made = line(27, "Net.forward", "    counts = torch.zeros(4, device=x.device)", "torch.zeros(4, device=x.device)");
  }
  SECTION("another function made it") {
    made.function = "main";
  }
  SECTION("it is a weight") {
    wanted(finding).is = NameKind::parameter;
  }
  CHECK(cause_line(explained(finding)) == 5);
}

// A head on the CPU in a model on cuda:0.
Finding unmoved_head() {
  Finding finding = add("self.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(6, "Head.__init__", "        self.inner = nn.Linear(4, 4)", "nn.Linear(4, 4)"))};
  find(odd(finding), EvidenceKind::module_bound_at, line(50, "main", "    model = Net().to(dev)"), "model");
  find(odd(finding), EvidenceKind::weights_elsewhere, {}, "cuda:0 10 of 12 Net");
  find(odd(finding), EvidenceKind::module_put_at, line(44, "adapt", "    model.head = Head(4)"), "Net.head");
  return finding;
}

TEST_CASE("A part that was put into a model on another device is the cause where it was put there") {
  const Finding told = explained(unmoved_head());
  CHECK(told.rule == "module_not_moved");
  CHECK(cause_line(told) == 44);
  CHECK_THAT(told.root_cause->why, Contains("a parameter of `head`, which is put into a `Net` here"));
  CHECK_THAT(told.fix->text, Contains("`model.head = Head(4).to('cuda:0')`"));
}

TEST_CASE("A part that the model's constructor made is the cause only while that still runs") {
  Finding finding = unmoved_head();
  odd(finding).evidence.back().at = line(15, "Net.__init__", "        self.head = Head(4)");
  CHECK(cause_line(explained(finding)) == 50);
  finding.stack.push_back(line(16, "Net.__init__", "        self.head(sample)"));
  CHECK(cause_line(explained(finding)) == 15);
}

TEST_CASE("A model that was moved is not said to have stayed where nobody knows how a part came into it") {
  Finding finding = unmoved_head();
  odd(finding).evidence.pop_back();
  CHECK(cause_line(explained(finding)) == 6);
}

TEST_CASE("A part of a model that is mostly on the same device as the part was not put there too late") {
  Finding finding = unmoved_head();
  odd(finding).evidence[1].text = "cuda:1 10 of 12 Net";
  CHECK(cause_line(explained(finding)) == 50);
}

}  // namespace
}  // namespace devsan::report
