// Rules about what PyTorch lets pass: numbers that the host waits for, and copies that are not over.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

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

TEST_CASE("A line that takes an entry out of a tensor, for the operator that waits, is told of itself") {
  const LineageStep made = derived(line(20, "assign", "    k = best.sum(0)"), "cuda:0");
  const Finding told = explained(number_taken("    pos = torch.topk(cost[:, g], k[g])", made));
  CHECK(told.rule == "number_on_device");
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

TEST_CASE("What is taken back from the host before the copy there is over is told of where it is taken back") {
  const Finding told = explained(race(trace::RaceKind::stream_used_target, true));
  CHECK(told.rule == "copy_still_running");
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
  CHECK(rule_of(finding) == "pageable_memory");
  CHECK(cause_line(explained(finding)) == 23);
  CHECK_THAT(explained(finding).fix->text, Contains("`pin`, which this line gives as `pin_memory`, was not true"));

  odd(finding).lineage.front().at = line(23, "Runner.__init__", "        self.rows = torch.empty(n)", "torch.empty(n)");
  CHECK_THAT(explained(finding).fix->text, Contains("pass `pin_memory=True` in this line"));
}

}  // namespace
}  // namespace devsan::report
