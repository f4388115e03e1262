// Which series grow from step to step, and which only fill, come and go, or waver.
#include "report/findings/growth.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

#include "report/render/render_terminal.h"
#include "report/wording/growth_text.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;
using Series = std::vector<GrowthPoint>;

Series series(std::uint32_t steps, std::uint32_t stride, const std::function<double(std::uint32_t)>& value) {
  Series points;
  for (std::uint32_t step = 0; step < steps; step += stride) points.push_back({step, value(step)});
  return points;
}

// Even noise, the same in each run.
class Noise {
 public:
  explicit Noise(double size) : spread_(-size, size) {}
  double operator()() { return spread_(random_); }

 private:
  std::mt19937 random_{7};
  std::uniform_real_distribution<double> spread_;
};

TEST_CASE("what gains the same with every step grows, however often it was looked at") {
  const std::uint32_t stride = GENERATE(1U, 3U, 40U);
  const auto slope = growth_of(series(stride * 60, stride, [](std::uint32_t step) { return 1000.0 + 4.0 * step; }));
  REQUIRE(slope);
  CHECK(slope->per_step == Approx(4.0));
  CHECK(slope->since == 0);
}

TEST_CASE("noise hides no growth that is larger") {
  Noise noise(200);
  const auto slope = growth_of(series(200, 1, [&](std::uint32_t step) { return 5000.0 + 10.0 * step + noise(); }));
  REQUIRE(slope);
  CHECK(slope->per_step == Approx(10.0).epsilon(0.1));
}

TEST_CASE("noise alone does not grow") {
  for (const double size : {1.0, 100.0, 10000.0}) {
    Noise noise(size);
    CHECK(!growth_of(series(400, 1, [&](std::uint32_t) { return 50000.0 + noise(); })));
  }
}

TEST_CASE("growth that begins in the first half of a run is seen, with its beginning") {
  const auto slope =
      growth_of(series(400, 2, [](std::uint32_t step) { return step < 160 ? 700.0 : 700.0 + 3.0 * (step - 160.0); }));
  REQUIRE(slope);
  CHECK(slope->per_step == Approx(3.0));
  CHECK(slope->since >= 150);
  CHECK(slope->since <= 170);
}

TEST_CASE("what stands still does not grow") {
  CHECK(!growth_of(series(2000, 31, [](std::uint32_t) { return 4096.0; })));
}

TEST_CASE("what fills and stops does not grow") {
  const double full = GENERATE(40.0, 200.0, 900.0);
  CHECK(!growth_of(series(2000, 31, [&](std::uint32_t step) { return std::min<double>(step, full); })));
}

TEST_CASE("a cache that is hit more and more often does not grow") {
  for (const double kinds : {20.0, 100.0, 400.0}) {
    CHECK(!growth_of(series(2000, 31, [&](std::uint32_t step) { return kinds * (1 - std::exp(-(step / kinds))); })));
  }
}

TEST_CASE("a sawtooth does not grow, whatever its period") {
  const std::uint32_t period = GENERATE(5U, 50U, 400U, 999U);
  CHECK(!growth_of(series(2000, 31, [&](std::uint32_t step) { return 100.0 * (step % period); })));
}

TEST_CASE("what is freed at last did not grow") {
  CHECK(!growth_of(series(1000, 16, [](std::uint32_t step) { return step < 960 ? 1.0 * step : 0.0; })));
}

TEST_CASE("what doubles now and then does not grow step by step") {
  CHECK(!growth_of(series(2000, 31, [](std::uint32_t step) { return std::exp2(std::floor(std::log2(step + 1.0))); })));
}

TEST_CASE("a single jump does not grow") {
  const std::uint32_t at = GENERATE(600U, 1000U, 1400U, 1900U);
  CHECK(!growth_of(series(2000, 31, [&](std::uint32_t step) { return step < at ? 10.0 : 500.0; })));
}

TEST_CASE("a few steps are not enough to tell") {
  CHECK(!growth_of(series(12, 1, [](std::uint32_t step) { return 1.0 * step; })));
  CHECK(!growth_of(series(2000, 400, [](std::uint32_t step) { return 1.0 * step; })));
  CHECK(!growth_of({}));
}

TEST_CASE("the median slope is not moved by a few odd points") {
  Series points = series(40, 1, [](std::uint32_t step) { return 2.0 * step; });
  points[11].value = 1e9;
  points[30].value = -1e9;
  CHECK(median_slope(points) == Approx(2.0));
  CHECK(median_slope({}) == 0);
}

Finding growing(bool graph, const std::string& holder) {
  Finding finding;
  finding.kind = Kind::memory_growth;
  finding.severity = Severity::warning;
  finding.pid = 4242;
  finding.op = "aten::nll_loss_forward";
  Frame at;
  at.file = "/srv/a_long_project_name/train.py";
  at.line = 17;
  at.function = "train";
  finding.where = at;
  Growth growth;
  growth.device = "cuda:0";
  growth.holder = holder;
  growth.graph = graph;
  growth.since = 3;
  growth.bytes_per_step = 3.5 * (1 << 20);
  growth.bytes = 400 << 20;
  growth.steps_left = 812;
  for (int i = 0; i < 9; ++i) growth.parts.push_back({at, "aten::addmm", 400e3, 1, 40 << 20});
  finding.growth = growth;
  advise(finding);
  return finding;
}

TEST_CASE("growth is shown with what keeps it and with the change to make, in 80 columns") {
  const std::string text = render_finding(growing(true, "self.losses[...]"), Style{false, 80});
  CHECK_THAT(text, Contains("warning[memory-growth] cuda:0 grows: 3.5 MiB more with every step"));
  CHECK_THAT(text, Contains("`self.losses[...]`, with its autograd graphs"));
  CHECK_THAT(text, Contains("3 more operators"));
  CHECK_THAT(text, Contains("full in 812 more steps"));
  CHECK_THAT(text, Contains(".detach()"));
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; begin = end + 1, end = text.find('\n', begin)) {
    CHECK(end - begin <= 80 + 8);  // bytes; a few characters have several
  }
}

TEST_CASE("that no tensors account for a growth is said only where they were looked at often enough") {
  Finding finding = growing(false, "");
  finding.growth->parts.clear();
  CHECK_THAT(render_finding(finding, Style{false, 120}), Contains("and no tensors account for it"));
  finding.growth->seldom = true;
  CHECK_THAT(render_finding(finding, Style{false, 120}), Contains("the run was too short to tell by which tensors"));
}

TEST_CASE("no change is proposed where nobody knows what keeps the tensors") {
  const Finding finding = growing(true, "");
  CHECK(!finding.fix);
  CHECK(!finding.root_cause);
}

TEST_CASE("tensors without a graph are not told to be detached") {
  const Finding finding = growing(false, "buffers[...]");
  REQUIRE(finding.fix);
  CHECK_THAT(finding.fix->text, !Contains("detach"));
}

}  // namespace
}  // namespace devsan::report
