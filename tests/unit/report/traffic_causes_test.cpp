// Causes of what PyTorch lets pass: numbers that the host waits for, and copies that are not over.
#include <catch2/catch.hpp>

#include "program_findings.h"
#include "report/causes/traffic_causes.h"

namespace devsan::report {
namespace {

using namespace program_findings;
using Catch::Matchers::Contains;

Finding explained(Finding finding) {
  explain_traffic(finding);
  return finding;
}

int cause_line(const Finding& finding) {
  return finding.root_cause ? finding.root_cause->line : 0;
}

bool says(const Finding& finding, const char* text) {
  return finding.root_cause && finding.root_cause->why.find(text) != std::string::npos;
}

// `topk(scores, k[g])`, whose k is on a device.
Finding number_taken(const std::string& source, const LineageStep& made) {
  Finding finding = add("k");
  finding.raised = false;
  finding.kind = Kind::implicit_sync;
  finding.severity = Severity::warning;
  finding.where = line(22, "assign", source);
  finding.operands = {odd(finding)};
  finding.operands[0].device = "cuda:0";
  finding.operands[0].lineage = {made};
  finding.traffic = Traffic{};
  finding.traffic->taker = "aten::topk";
  return finding;
}

TEST_CASE("The cause of a wait is the line itself where that takes an entry out of a tensor") {
  const LineageStep made = derived(line(20, "assign", "    k = best.sum(0)"), "cuda:0");
  const Finding told = explained(number_taken("    pos = torch.topk(cost[:, g], k[g])", made));
  CHECK(cause_line(told) == 22);
  CHECK(says(told, "takes an entry out of `k`, a tensor on cuda:0 that model.py:20 makes"));
  CHECK_THAT(told.fix->text, Contains("`k.tolist()`"));

  CHECK(cause_line(explained(number_taken("    pos = torch.topk(cost[:, g], k)", made))) == 20);
  CHECK(cause_line(explained(number_taken("    pos = torch.topk(cost[:, g], fill(k[1:]))", made))) == 20);
  LineageStep other = made;
  other.at.function = "main";
  CHECK(cause_line(explained(number_taken("    pos = torch.topk(cost[:, g], k[g])", other))) == 20);
}

TEST_CASE("What is said of a line that made a number is what is known of it") {
  const char* use = "    pos = torch.topk(cost, k)";
  const Frame at = line(20, "assign", "    k = best.sum()");
  CHECK(says(explained(number_taken(use, with_op(derived(at, "cuda:0"), "aten::sum"))), "makes one number on cuda:0"));
  CHECK(says(explained(number_taken(use, with_op(derived(at, "cuda:0"), "aten::sum.dim_IntList"))),
             "makes the number on cuda:0, by itself or as an entry of a tensor"));
  CHECK(says(explained(number_taken(use, moved(at, "cuda:0"))),
             "brings the number to cuda:0, by itself or as an entry of a tensor"));
}

Finding race(trace::RaceKind kind, bool to_host) {
  Finding finding = add("host");
  finding.raised = false;
  finding.kind = Kind::async_race;
  finding.where = line(27, "Offload.reload", "        return self.host[key].to(device, non_blocking=True)");
  finding.traffic = Traffic{};
  finding.traffic->race = kind;
  finding.traffic->to_host = to_host;
  finding.traffic->copy = line(21, "Offload.push", "            host.copy_(x, non_blocking=True)");
  return finding;
}

TEST_CASE("A race with a copy to the host that is taken back too early is reported where it is taken back") {
  const Finding told = explained(race(trace::RaceKind::stream_used_target, true));
  CHECK(cause_line(told) == 27);
  CHECK(says(told, "takes to the device what model.py:21 copies to the host"));
  CHECK_THAT(told.fix->text, Contains("wait_stream("));

  CHECK(cause_line(explained(race(trace::RaceKind::stream_used_target, false))) == 21);
  CHECK(cause_line(explained(race(trace::RaceKind::host_read_target, true))) == 21);
  Finding library = race(trace::RaceKind::stream_used_target, true);
  library.where = library_line(27, "reload", "        return host.to(device, non_blocking=True)");
  CHECK(cause_line(explained(library)) == 21);
}

TEST_CASE("A factory that is told whether to pin is not told to be told") {
  Finding finding = add("x");
  finding.raised = false;
  finding.kind = Kind::unpinned_async_copy;
  finding.traffic = Traffic{};
  odd(finding).lineage = {
      with_op(created(line(23, "Runner.__init__", "        self.rows = torch.empty(n, pin_memory=pin)",
                           "torch.empty(n, pin_memory=pin)")),
              "aten::empty")};
  CHECK(cause_line(explained(finding)) == 23);
  CHECK_THAT(explained(finding).fix->text, Contains("`pin`, which this line gives as `pin_memory`, was not true"));

  odd(finding).lineage.front().at = line(23, "Runner.__init__", "        self.rows = torch.empty(n)", "torch.empty(n)");
  CHECK_THAT(explained(finding).fix->text, Contains("pass `pin_memory=True` in this line"));
}

// `host`, which `copy` makes on the host, is read before that copy has run.
Finding read_too_early(const Frame& copy, std::vector<Frame> calls) {
  Finding finding = add("host");
  finding.raised = false;
  finding.kind = Kind::async_race;
  finding.operands = {odd(finding)};
  finding.operands.front().odd = false;
  LineageStep step = moved(copy, "cpu");
  step.calls = std::move(calls);
  finding.operands.front().lineage = {step};
  Traffic traffic;
  traffic.race = trace::RaceKind::host_read_target;
  traffic.to_host = true;
  traffic.copy = copy;
  finding.traffic = traffic;
  return finding;
}

TEST_CASE("Who asks a helper for an asynchronous copy is the one who has to wait") {
  const Frame told =
      line(8, "fetch", "    return x.to('cpu', non_blocking=non_blocking)", "x.to('cpu', non_blocking=non_blocking)");
  const Frame middle =
      line(12, "Log.read", "        return fetch(x, non_blocking=eager)", "fetch(x, non_blocking=eager)");
  const Frame asks = line(20, "main", "    host = log.read(x, eager=True)", "log.read(x, eager=True)");
  const auto cause = [](const Frame& copy, std::vector<Frame> calls) {
    return cause_line(explained(read_too_early(copy, std::move(calls))));
  };
  CHECK(cause(told, {middle, asks}) == 20);
  CHECK(says(explained(read_too_early(told, {middle, asks})), "copy to the host, which model.py:8 makes"));

  SECTION("through all that a function hands on, and a comprehension") {
    const Frame inner =
        line(8, "fetch.<locals>.<listcomp>", "    return [x.to('cpu', **how) for x in xs]", "x.to('cpu', **how)");
    const Frame outer = line(8, "fetch", "    return [x.to('cpu', **how) for x in xs]");
    const Frame call = line(20, "main", "    fetch(xs, non_blocking=True)");
    CHECK(cause(inner, {outer, call}) == 20);
  }
  SECTION("not where the copy says so itself") {
    const Frame copy = line(8, "fetch", "    return x.to('cpu', non_blocking=True)", "x.to('cpu', non_blocking=True)");
    CHECK(cause(copy, {asks}) == 8);
  }
  SECTION("not where an attribute decides, or a call leaves it at its default") {
    const Frame own =
        line(8, "fetch", "    return x.to('cpu', non_blocking=self.eager)", "x.to('cpu', non_blocking=self.eager)");
    CHECK(cause(own, {asks}) == 8);
    CHECK(cause(told, {line(20, "main", "    fetch(x)")}) == 8);
    CHECK(cause(told, {}) == 8);
  }
  SECTION("not in a library") {
    CHECK(cause(told, {library_line(20, "main", "    fetch(x, non_blocking=True)")}) == 8);
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

TEST_CASE("The cause of batches in pageable memory is the line that makes their loader") {
  Finding finding = loaded();
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 12);
  CHECK(told.root_cause->operand == "batch");
  CHECK(told.fix->text == "Pass `pin_memory=True` to the DataLoader.");

  SECTION("and where the loop reads from it, if nobody knows who made it") {
    finding.traffic->copy.reset();
    CHECK(cause_line(explained(finding)) == 28);
  }
}

TEST_CASE("A loop that takes numbers out of a tensor on a device is told instead of who made the tensor") {
  Finding finding = add("end");
  finding.raised = false;
  finding.kind = Kind::implicit_sync;
  finding.severity = Severity::warning;
  finding.where = line(34, "encode", "        part = values[:, start:end]");
  finding.operands = {odd(finding)};
  finding.operands[0].device = "cuda:0";
  finding.operands[0].lineage = {moved(line(18, "Columns.to", "        self.offset.to(device)"), "cuda:0")};
  finding.traffic = Traffic{};
  finding.traffic->taker = "aten::slice.Tensor";
  CHECK(cause_line(explained(finding)) == 18);
  finding.traffic->copy = line(33, "encode", "    for start, end in zip(offset[:-1], offset[1:]):");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 33);
  CHECK_THAT(told.fix->text, Contains("`.tolist()`"));
}

TEST_CASE("The cause of numbers that one line takes out of a tensor is that line") {
  Finding finding = add("start");
  finding.raised = false;
  finding.kind = Kind::implicit_sync;
  finding.severity = Severity::warning;
  finding.traffic.emplace();
  finding.traffic->copy = line(26, "pad", "    start, end = offsets[b], offsets[b + 1]");
  finding.where = line(30, "pad", "    rows = lse[start:end]", "lse[start:end]");
  finding.operands = {odd(finding)};
  finding.operands[0].device = "cuda:0";
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 26);
  CHECK(says(told, "This line takes its numbers out of a tensor"));
}

TEST_CASE("A list of numbers on a device is stacked, and not read one by one") {
  Finding finding = add("ratio");
  finding.raised = false;
  finding.kind = Kind::implicit_sync;
  finding.severity = Severity::warning;
  finding.traffic.emplace();
  finding.where = line(30, "step", "    rks = torch.tensor(ratios)", "torch.tensor(ratios)");
  finding.operands = {odd(finding)};
  finding.operands[0].device = "cuda:0";
  finding.operands[0].lineage = {derived(line(26, "step", "    ratios.append(a / b)"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("`torch.stack()`"));

  SECTION("the cause of a number that another call takes is the line that makes it") {
    finding.where = line(30, "step", "    rks = torch.full((2,), ratio)", "torch.full((2,), ratio)");
    CHECK(cause_line(explained(finding)) == 26);
  }
}

}  // namespace
}  // namespace devsan::report
