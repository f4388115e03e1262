// Rules about hooks that do not see what they should bring over, about names that say the host, and about lines that
// put together what is on several devices.
#include <catch2/catch.hpp>
#include <utility>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kMade = line(5, "load", "    rows = torch.randn(4)", "torch.randn(4)");

Finding found(EvidenceKind kind, const Frame& at, const char* text) {
  Finding finding = add("rows");
  odd(finding).lineage = {created(kMade)};
  find(odd(finding), kind, at, text);
  return finding;
}

TEST_CASE("A module whose forward is called past its hooks is to be called itself") {
  Finding finding =
      found(EvidenceKind::forward_called_at, line(18, "Lora.forward", "        y = self.base.forward(x)"), "Linear");
  const Finding told = explained(finding);
  CHECK(told.rule == "hook_bypassed");
  CHECK(cause_line(told) == 18);
  CHECK_THAT(told.root_cause->why, Contains("A `Linear` has hooks") && Contains("calls its `forward`, past them"));
  CHECK_THAT(told.fix->text, Contains("Call the module itself"));

  SECTION("or kept itself, where a line keeps its forward") {
    odd(finding).evidence.front().at.source = "        self.old = base.forward";
    CHECK_THAT(explained(finding).root_cause->why, Contains("keeps its `forward`, to be called later, past them"));
    CHECK_THAT(explained(finding).fix->text, Contains("Keep the module itself here"));
  }
  SECTION("not for a weight, which hooks on calls do not bring") {
    odd(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "hook_bypassed");
  }
  SECTION("not in a library that did not fail") {
    odd(finding).evidence.front().at.library = true;
    CHECK(explained(finding).rule != "hook_bypassed");
  }
}

TEST_CASE("A hook on a list of modules is never called") {
  Finding finding = found(EvidenceKind::hook_on_list_at,
                          line(44, "main", "    net.blocks.register_forward_pre_hook(bring)"), "ModuleList");
  const Finding told = explained(finding);
  CHECK(told.rule == "hook_bypassed");
  CHECK(cause_line(told) == 44);
  CHECK_THAT(told.root_cause->why, Contains("a hook on a `ModuleList`, which nobody ever calls"));
  CHECK_THAT(told.fix->text, Contains("on each module in the `ModuleList`"));
  odd(finding).is = NameKind::buffer;
  odd(finding).lineage = {moved(line(9, "main", "    net.cpu()"), "cpu")};
  CHECK(explained(finding).rule != "hook_bypassed");
}

TEST_CASE("A hook that moves some of what comes by position leaves the rest") {
  Finding finding =
      found(EvidenceKind::hook_leaves_argument_at, line(9, "bring", "    return (args[0].to(d), *args[1:])"), "rows");
  const Finding told = explained(finding);
  CHECK(told.rule == "hook_leaves_names");
  CHECK(cause_line(told) == 9);
  CHECK_THAT(told.root_cause->why, Contains("`rows` is among the rest, and goes on as it came, on the CPU"));
  CHECK_THAT(told.fix->text, Contains("Move all tensors that come by position to cuda:0"));
  odd(finding).is = NameKind::parameter;
  CHECK(explained(finding).rule != "hook_leaves_names");
}

// `lengths_cpu`, which is on cuda:0, meets `rows` on the CPU.
Finding named_for_host(const char* name) {
  Finding finding = add("rows");
  odd(finding).lineage = {created(kMade)};
  wanted(finding).name = name;
  wanted(finding).lineage = {
      moved(line(21, "collate", "    lengths_cpu = lengths.to(device)", "lengths.to(device)"), "cuda:0")};
  return finding;
}

TEST_CASE("What says by its name that it is on the host is the odd one where it is not") {
  Finding finding = named_for_host("lengths_cpu");
  const Finding told = explained(finding);
  CHECK(told.rule == "named_for_host");
  CHECK(cause_line(told) == 21);
  CHECK(told.root_cause->operand == "lengths_cpu");
  CHECK_THAT(told.fix->text, Contains("Leave it on the CPU in this line"));
  CHECK(explained(named_for_host("self.rows_host[0]")).rule == "named_for_host");

  SECTION("and is to be made there, where it was made") {
    wanted(finding).lineage = {
        created(line(21, "collate", "    lengths_cpu = torch.ones(4)", "torch.ones(4)"), "cuda:0")};
    CHECK_THAT(explained(finding).fix->text, Contains("`torch.ones(4, device='cpu')`"));
  }
  SECTION("but for longer words, and where both say so") {
    CHECK(explained(named_for_host("host_ids")).rule != "named_for_host");
    CHECK(explained(named_for_host("hosted")).rule != "named_for_host");
    CHECK(explained(named_for_host("ghost_rows")).rule != "named_for_host");
    odd(finding).name = "rows_cpu";
    CHECK(explained(finding).rule != "named_for_host");
  }
  SECTION("but not a weight, nor between accelerators") {
    odd(finding).device = odd(finding).lineage.front().device = "cuda:1";
    CHECK(explained(finding).rule != "named_for_host");
    finding = named_for_host("lengths_cpu");
    wanted(finding).is = NameKind::buffer;
    CHECK(explained(finding).rule != "named_for_host");
  }
}

// `torch.stack([p.norm() for p in parameters])` over two accelerators.
Finding gathered() {
  Finding finding = add("");
  const char* call = "torch.stack([p.norm() for p in parameters])";
  finding.where = line(30, "clip", std::string("    total = ") + call, call);
  finding.stack = {*finding.where};
  wanted(finding).arg = "tensors[0]";
  wanted(finding).name = "";
  wanted(finding).lineage = {derived(line(30, "clip.<locals>.<listcomp>", finding.where->source), "cuda:0")};
  odd(finding).arg = "tensors[3]";
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {derived(line(30, "clip.<locals>.<listcomp>", finding.where->source), "cuda:1")};
  return finding;
}

TEST_CASE("A line that computes entries on several accelerators brings them to one itself") {
  Finding finding = gathered();
  const Finding told = explained(finding);
  CHECK(told.rule == "gathered_from_devices");
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.root_cause->why, Contains("each entry of `tensors`") && Contains("cuda:0 and cuda:1 are among"));
  CHECK_THAT(told.fix->text, Contains("`.to('cuda:0')`"));

  SECTION("not what another line has computed") {
    odd(finding).lineage.front().at.line = 28;
    CHECK(explained(finding).rule != "gathered_from_devices");
  }
  SECTION("not what has a name") {
    odd(finding).name = "norms[3]";
    CHECK(explained(finding).rule != "gathered_from_devices");
  }
  SECTION("not of two lists") {
    odd(finding).arg = "others[0]";
    CHECK(explained(finding).rule != "gathered_from_devices");
  }
  SECTION("not beside the host") {
    odd(finding).device = "cpu";
    CHECK(explained(finding).rule != "gathered_from_devices");
  }
}

// `kept.lerp_(value, w)`: `kept` is a copy of `value` that its constructor put on the CPU.
Finding averaged() {
  Finding finding = add("kept");
  finding.op = "aten::lerp_.Scalar";
  finding.where = line(30, "Average.update", "        kept.lerp_(value, w)", "kept.lerp_(value, w)");
  finding.stack = {*finding.where};
  const LineageStep made = created(line(4, "Net.__init__", "        self.w = nn.Parameter(torch.ones(4))"));
  LineageStep clone = derived(line(12, "Average.__init__", "        self.copy = copy.deepcopy(model).to(device)"));
  odd(finding).arg = "self";
  odd(finding).lineage = {
      moved(line(12, "Average.__init__", "        self.copy = copy.deepcopy(model).to(device)"), "cpu"), clone, made};
  wanted(finding).arg = "end";
  wanted(finding).name = "value";
  wanted(finding).lineage = {moved(line(50, "main", "    net.cuda()"), "cuda:0"), made};
  return finding;
}

TEST_CASE("What is taken into a copy of a model is brought to where that is kept") {
  Finding finding = averaged();
  const Finding told = explained(finding);
  CHECK(told.rule == "updated_where_kept");
  CHECK(cause_line(told) == 30);
  CHECK(told.root_cause->operand == "value");
  CHECK_THAT(told.fix->text, Contains("`value.to(kept.device)`"));

  SECTION("in the line that gives it a name") {
    find(wanted(finding), EvidenceKind::bound_at, line(28, "Average.update", "        value = other.detach()"),
         "value");
    CHECK(cause_line(explained(finding)) == 28);
  }
  SECTION("also by an operator that is told to write into it") {
    finding.op = "aten::lerp.Scalar_out";
    CHECK(explained(finding).rule != "updated_where_kept");
    Operand out = odd(finding);
    out.arg = "out";
    finding.operands.push_back(out);
    CHECK(explained(finding).rule == "updated_where_kept");
    finding.operands.back().name = "result";
    CHECK(explained(finding).rule != "updated_where_kept");
  }
  SECTION("not where it is no copy") {
    odd(finding).lineage[1].op = "aten::mul";
    CHECK(explained(finding).rule != "updated_where_kept");
  }
  SECTION("not a copy of something else") {
    odd(finding).lineage.back().at.line = 6;
    CHECK(explained(finding).rule != "updated_where_kept");
  }
  SECTION("not where it was moved by somebody else than its constructor") {
    odd(finding).lineage.front().at.function = "Average.offload";
    CHECK(explained(finding).rule != "updated_where_kept");
  }
  SECTION("not where nothing is written into it") {
    finding.op = "aten::lerp.Scalar";
    CHECK(explained(finding).rule != "updated_where_kept");
    std::swap(finding.operands[0].lineage, finding.operands[1].lineage);
    std::swap(finding.operands[0].device, finding.operands[1].device);
    CHECK(explained(finding).rule != "updated_where_kept");
  }
}

// `batch.to('cuda', non_blocking=True)` of a loader whose batches are not pinned.
Finding loaded() {
  Finding finding = add("batch");
  finding.kind = Kind::unpinned_async_copy;
  finding.where = line(30, "train", "    batch = batch.to('cuda', non_blocking=True)");
  finding.operands.erase(finding.operands.begin());
  finding.operands.front().lineage = {created(line(28, "train", "    for batch in loader:"))};
  finding.traffic.emplace();
  finding.traffic->from_loader = true;
  finding.traffic->copy =
      line(12, "make_loader", "    return DataLoader(data, batch_size=8)", "DataLoader(data, batch_size=8)");
  return finding;
}

TEST_CASE("Batches in pageable memory are told of where their loader is made") {
  Finding finding = loaded();
  const Finding told = explained(finding);
  CHECK(told.rule == "pageable_memory");
  CHECK(cause_line(told) == 12);
  CHECK(told.root_cause->operand == "batch");
  CHECK_THAT(told.fix->text, Contains("`DataLoader(data, batch_size=8, pin_memory=True)`"));

  SECTION("in words, where another call makes it") {
    finding.traffic->copy = line(12, "main", "    loader = make_loader(data)", "make_loader(data)");
    CHECK(explained(finding).fix->text == "Pass `pin_memory=True` to the DataLoader.");
  }
  SECTION("and where the loop reads from it, if nobody knows who made it") {
    finding.traffic->copy.reset();
    CHECK(cause_line(explained(finding)) == 28);
  }
}

}  // namespace
}  // namespace devsan::report
