// Mistakes that rules know in one form, written in another; and near each what only looks like it.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

// `values * fade` in a function inside of `Ranking.judge`, which has made `fade` on an accelerator.
Finding in_nested_function() {
  Finding finding = add("gains");
  const Frame made =
      line(12, "Ranking.judge", "        fade = torch.ones(4, device='cuda')", "torch.ones(4, device='cuda')");
  finding.where = line(15, "Ranking.judge.<locals>.total", "            return gains * fade", "gains * fade");
  finding.stack = {*finding.where, line(17, "Ranking.judge", "        return total(found)", "total(found)")};
  odd(finding).lineage = {created(line(3, "<module>", "rows = torch.ones(4)", "torch.ones(4)"))};
  wanted(finding).name = "fade";
  wanted(finding).lineage = {created(made, "cuda:0")};
  find(wanted(finding), EvidenceKind::alone_on_device, {}, "cuda:0");
  return finding;
}

TEST_CASE("A function inside of the one that makes it on an accelerator works with what that works with") {
  Finding finding = in_nested_function();
  CHECK(rule_of(finding) == "alone_on_accelerator");
  CHECK(cause_line(explained(finding)) == 12);

  SECTION("another function of the same class does not") {
    finding.where->function = "Ranking.judge_all.<locals>.total";
    finding.stack.front() = *finding.where;
    CHECK(rule_of(finding) != "alone_on_accelerator");
  }
}

// `counts.op(by)`: `counts`, of one element, on the CPU; `by` a number on an accelerator.
Finding in_place(const char* op) {
  Finding finding = add("by");
  finding.op = op;
  finding.where = line(14, "Table.fade", std::string("        self.counts.") + op + "(by)");
  finding.stack = {*finding.where};
  odd(finding).device = "cuda:0";
  odd(finding).shape = std::vector<std::int64_t>{};
  const Frame made = line(22, "<module>", "    by = 1.0 if turn < 2 else loss.mean()", "loss.mean()");
  odd(finding).lineage = {derived(made, "cuda:0")};
  odd(finding).lineage.front().op = "aten::mean";
  wanted(finding).name = "counts";
  wanted(finding).device = "cpu";
  wanted(finding).shape = std::vector<std::int64_t>{1};
  wanted(finding).lineage = {
      created(line(10, "Table.__init__", "        self.counts = torch.ones(1)", "torch.ones(1)"))};
  return finding;
}

TEST_CASE("What is scaled takes nothing in: the factor was to be a number") {
  CHECK(rule_of(in_place("aten::add_.Tensor")) == "total_made_on_cpu");
  for (const char* op : {"aten::mul_.Tensor", "aten::div_.Tensor", "aten::pow_.Tensor"}) {
    CHECK(rule_of(in_place(op)) == "cuda_scalar_was_python_float");
    CHECK(cause_line(explained(in_place(op))) == 22);
  }
}

TEST_CASE("A call that is given `**options` may be told a device by them") {
  Finding finding = add("filters");
  odd(finding).lineage = {
      created(line(5, "build", "    return torch.linspace(0, 1, n, **options)", "torch.linspace(0, 1, n, **options)"))};
  CHECK(rule_of(finding) == "made_without_device");
  CHECK(cause_line(explained(finding)) == 0);
  odd(finding).lineage.front().at =
      line(5, "build", "    return torch.linspace(0, 1, n ** 2)", "torch.linspace(0, 1, n ** 2)");
  CHECK(cause_line(explained(finding)) == 5);
}

TEST_CASE("What is made like another tensor is where that one is, and not on the default device") {
  Finding finding = add("steps");
  odd(finding).lineage = {created(line(5, "steps_of", "    return x.new_tensor(rows)", "x.new_tensor(rows)"))};
  CHECK(says(explained(finding), "on the CPU, as what it is made like"));
  CHECK_FALSE(says(explained(finding), "no device is given"));
}

// `corners + centre`: a function is told where to make them, and makes the second on a device that it names itself.
TEST_CASE("A literal beside what is made as told ignores that, whoever told it") {
  Finding finding = add("corners");
  odd(finding).lineage = {
      created(line(12, "grids", "    corners = torch.arange(4, device=device)", "torch.arange(4, device=device)"))};
  find(odd(finding), EvidenceKind::device_from, line(20, "Layout.__init__", "        grids(4, **options)"), "device");
  wanted(finding).lineage = {created(
      line(13, "grids", "    centre = torch.ones(2, device='cuda')", "torch.ones(2, device='cuda')"), "cuda:0")};
  CHECK(rule_of(finding) == "device_not_taken");
  CHECK(cause_line(explained(finding)) == 13);

  SECTION("another variable may be the better one") {
    wanted(finding).lineage.front().at =
        line(13, "grids", "    centre = torch.ones(2, device=home)", "torch.ones(2, device=home)");
    CHECK(rule_of(finding) != "device_not_taken");
  }
}

// `mask`, computed in two lines from a weight that has moved since.
Finding computed() {
  Finding finding = add("mask");
  const Frame size = line(8, "keep_masks", "        size = weight.abs()", "weight.abs()");
  const Frame kept = line(9, "keep_masks", "        masks[name] = size > 1", "size > 1");
  odd(finding).lineage = {derived(kept), derived(size), created(line(2, "<module>", "net = nn.Linear(4, 4)"))};
  find(odd(finding), EvidenceKind::computed_before_move, size, "net.weight");
  find(odd(finding), EvidenceKind::source_moved_at, line(20, "<module>", "net.cuda()"), "cuda:0");
  return finding;
}

TEST_CASE("What is computed in several lines before a move is kept by the last of them") {
  Finding finding = computed();
  CHECK(rule_of(finding) == "computed_before_move");
  CHECK(cause_line(explained(finding)) == 9);

  SECTION("a line of another function only works with it") {
    odd(finding).lineage.front().at.function = "apply_masks";
    CHECK(cause_line(explained(finding)) == 8);
  }
  SECTION("a cache that finds it again in a later call is the mistake itself") {
    find(odd(finding), EvidenceKind::cache_key_at, odd(finding).lineage.front().at, "masks");
    CHECK(rule_of(finding) == "kept_from_first_call");
    CHECK(cause_line(explained(finding)) == 9);
  }
  SECTION("also where what it meets is the weight itself") {
    const LineageStep begun = odd(finding).lineage.back();
    wanted(finding).lineage = {moved(line(20, "<module>", "net.cuda()"), "cuda:0"), begun};
    odd(finding).lineage.front().op = "aten::gt";
    odd(finding).lineage[1].op = "aten::abs";
    CHECK(rule_of(finding) == "computed_before_move");
    odd(finding).lineage.erase(odd(finding).lineage.begin());
    odd(finding).lineage.front().op = "aten::clone";
    CHECK(rule_of(finding) == "left_behind");
  }
}

// `x, y = [batch[k].to(dev) for k in ("x", "y")]`, and `weights = batch["weights"]` under it.
TEST_CASE("What is taken out as it is, under a line that takes out and moves the others, is moved there") {
  Finding finding = add("weights");
  odd(finding).lineage = {created(line(3, "collate", "    w = torch.ones(4)", "torch.ones(4)"))};
  const Frame listed = line(21, "step", "    x, y = [batch[k].to(dev) for k in ('x', 'y')]");
  find(odd(finding), EvidenceKind::sibling_moved, listed, "['x']");
  find(odd(finding), EvidenceKind::names_listed_at, listed, "weights");
  find(odd(finding), EvidenceKind::first_bound_at, line(22, "step", "    weights = batch['weights']"), "weights");
  const Finding told = explained(finding);
  CHECK(told.rule == "left_out_of_move");
  CHECK(cause_line(told) == 22);
  CHECK_THAT(told.fix->text, Contains("`weights = batch['weights'].to('cuda:0')`"));

  SECTION("not where another function takes it out") {
    odd(finding).evidence.back().at.function = "Net.forward";
    CHECK(cause_line(explained(finding)) == 21);
  }
  SECTION("not where the line computes something of it") {
    odd(finding).evidence.back().at = line(22, "step", "    weights = normalised(batch['weights'])");
    CHECK(cause_line(explained(finding)) == 21);
  }
}

TEST_CASE("A value that is made like another one follows that, and is kept from an earlier call") {
  Finding finding = add("self.last", NameKind::attribute);
  odd(finding).lineage = {
      derived(line(18, "Smoother.__call__", "            self.last = torch.zeros_like(x)", "torch.zeros_like(x)")),
      created(line(2, "<module>", "net = nn.Linear(4, 4)", "nn.Linear(4, 4)"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Smoother.last");
  find(odd(finding), EvidenceKind::cache_guard_at,
       line(17, "Smoother.__call__", "        if self.last is None or self.last.shape != x.shape:"), "self.last");
  CHECK(rule_of(finding) == "kept_from_first_call");
  CHECK(cause_line(explained(finding)) == 17);

  SECTION("what a factory makes on the CPU in every call is not") {
    odd(finding).lineage = {
        created(line(18, "Smoother.__call__", "            self.last = torch.zeros(4)", "torch.zeros(4)"))};
    CHECK(rule_of(finding) != "kept_from_first_call");
  }
}

TEST_CASE("A hook on a list of modules brings over no weights of theirs either") {
  Finding finding = add("self.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(5, "Net.__init__", "        self.blocks = nn.ModuleList(parts)"))};
  find(odd(finding), EvidenceKind::hook_on_list_at, line(44, "main", "    net.blocks.register_forward_pre_hook(bring)"),
       "ModuleList");
  CHECK(rule_of(finding) == "hook_bypassed");
  CHECK(cause_line(explained(finding)) == 44);

  SECTION("not those that somebody has moved away") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(9, "main", "    net.cpu()"), "cpu"));
    CHECK(rule_of(finding) != "hook_bypassed");
  }
}

// `scale, shift = condition.chunk(2)` in `Net.late`, which meets what a part of `Net` on cuda:1 has computed.
Finding taken_up() {
  Finding finding = add("x");
  finding.where = line(12, "modulate", "    return x * scale", "x * scale");
  finding.stack = {*finding.where, line(26, "Net.late", "        return modulate(x, scale)")};
  odd(finding).device = "cuda:1";
  LineageStep placed = moved(line(20, "Net.__init__", "        self.mid.to('cuda:1')"), "cuda:1");
  placed.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
  odd(finding).lineage = {derived(line(24, "Net.late", "        x = self.mid(x)", "self.mid(x)"), "cuda:1"), placed,
                          created(line(20, "Net.__init__", "        self.mid = nn.Linear(4, 4)"))};
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  wanted(finding).name = "scale";
  wanted(finding).lineage = {created(line(40, "<module>", "net(x, torch.ones(8, device='cuda:0'))"), "cuda:0")};
  find(wanted(finding), EvidenceKind::bound_at, line(25, "Net.late", "        scale, shift = condition.chunk(2)"),
       "scale");
  return finding;
}

TEST_CASE("What a model on several accelerators takes apart as it came is brought to its part there") {
  Finding finding = taken_up();
  CHECK(rule_of(finding) == "inside_spread_model");
  CHECK(cause_line(explained(finding)) == 25);
  CHECK(explained(finding).root_cause->operand == "scale");

  SECTION("not where another part has computed it") {
    wanted(finding).lineage.back().at.function = "Part.__init__";
    CHECK(rule_of(finding) == "crossed_over");
  }
  SECTION("not where the model has made it itself") {
    wanted(finding).lineage.back().at = line(23, "Net.late", "        condition = torch.ones(8, device=x.device)");
    CHECK(cause_line(explained(finding)) != 25);
  }
  SECTION("not where it was bound outside of the model") {
    wanted(finding).evidence.back().at.function = "train";
    CHECK(cause_line(explained(finding)) != 25);
  }
}

TEST_CASE("A method of a model that lies on several accelerators hands on what it computed of what came") {
  Finding finding = add("frames");
  finding.where = line(29, "Net.pool", "        return steps < frames", "steps < frames");
  finding.stack = {*finding.where, line(24, "Net.forward", "        return self.pool(x, frames)")};
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {derived(line(23, "Net.forward", "        frames = lengths // 2", "lengths // 2"), "cuda:0"),
                          created(line(40, "<module>", "net(x, torch.ones(2, device='cuda:0'))"), "cuda:0")};
  find(odd(finding), EvidenceKind::model_spread, {}, "Net");
  wanted(finding).device = "cuda:1";
  CHECK(rule_of(finding) == "inside_spread_model");
  CHECK(cause_line(explained(finding)) == 23);

  SECTION("another object's does not") {
    odd(finding).lineage.front().at.function = "Loader.batch";
    CHECK(cause_line(explained(finding)) == 29);
  }
}

TEST_CASE("Entries that a mapped function computes are gathered from devices as those of a comprehension are") {
  Finding finding = add("");
  finding.where =
      line(30, "total", "    return torch.stack(list(map(norm, parts)))", "torch.stack(list(map(norm, parts)))");
  finding.stack = {*finding.where};
  for (Operand* operand : {&wanted(finding), &odd(finding)}) {
    const char* device = operand == &odd(finding) ? "cuda:1" : "cuda:0";
    operand->name = "";
    operand->arg = operand == &odd(finding) ? "tensors[1]" : "tensors[0]";
    operand->device = device;
    operand->lineage = {derived(line(30, "total", finding.where->source, "map(norm, parts)"), device),
                        created(line(5, "load", "    torch.ones(4)"), device)};
  }
  CHECK(rule_of(finding) == "gathered_from_devices");
}

}  // namespace
}  // namespace devsan::report
