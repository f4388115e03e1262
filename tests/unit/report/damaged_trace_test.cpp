// Reports of traces that were damaged at random: whatever can be read is shown, and nothing breaks.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "report/findings/collect.h"
#include "report/render/render_json.h"
#include "report/render/render_terminal.h"
#include "report/render/summary.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A trace with something of every kind in it.
void record_all_kinds(TraceBuilder& builder) {
  using enum trace::How;
  auto& recorder = builder.recorder();
  recorder.add_run_info("command", "python train.py");
  recorder.add_notice("Something to know.");
  auto lineage = trace::LineageId::none;
  for (int i = 0; i < 12; ++i) {
    lineage = builder.lineage(lineage, i == 0 ? created : derived, "aten::norm", "cuda:0",
                              {"/srv/app/train.py", 30 - i, "main", "    norm = grads.norm()  # größe"});
  }
  const Spot failing{"/srv/app/train.py", 5, "main", "    master.grad.mul_(1. / scale)", 4, 32};
  builder.meeting({.op = "aten::mul_.Tensor",
                   .frames = {failing, {"/srv/app/train.py", 50, "<module>"}},
                   .operands = {{"self", "cpu", {9}, "master.grad"},
                                {"other", "cuda:0", {}, "1. / scale", trace::NameKind::temporary, 0, lineage}},
                   .forward_frames = {{"/srv/app/train.py", 2, "forward"}}});
  builder.meeting({.op = "aten::add.Tensor",
                   .operands = {{"self", "cuda:0", {2}}, {"other", "cpu", {2}}},
                   .native_symbols = {"train()"}});
  trace::ThreadRing* ring = recorder.acquire_ring(11, "MainThread");
  REQUIRE(ring != nullptr);
  ring->entries[0] = {recorder.add_operator("aten::addmm"), trace::DeviceSlot::none, 0, builder.site(failing), 2, 0};
  ring->next = 1;
}

void check_all_views(const std::filesystem::path& directory) {
  const std::filesystem::path paths[] = {directory};
  const Reading reading = read_traces(paths);
  CHECK(reading.readable + reading.report.damage.size() > 0);
  CHECK(nlohmann::json::accept(render_json(reading.report)));
  for (const bool colour : {false, true}) {
    CHECK_FALSE(render_terminal(reading.report, {colour, 60}, {.notes = true, .suppressed = true}).empty());
    CHECK_FALSE(summary(reading.report, {colour, 80}).empty());
  }
}

TEST_CASE("Noise anywhere in a trace breaks no view of it") {
  const TemporaryDirectory original;
  TraceBuilder builder(original.path());
  record_all_kinds(builder);
  const std::string good = bytes_of(builder.file());
  // Noise where nothing is written would test nothing.
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (good[i] != '\0') written.push_back(i);
  }
  std::mt19937 random(2026);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  const TemporaryDirectory directory;
  for (int round = 0; round < 150; ++round) {
    std::string bad = good;
    for (std::size_t i = 1 + below(40); i > 0; --i) {
      bad[std::min(written[below(written.size())] + below(4), bad.size() - 1)] = static_cast<char>(random());
    }
    if (below(4) == 0) bad.resize(below(bad.size()));
    std::ofstream(directory.path() / "rank-.1.devsan", std::ios::binary | std::ios::trunc) << bad;
    check_all_views(directory.path());
  }
}

}  // namespace
}  // namespace devsan::report
