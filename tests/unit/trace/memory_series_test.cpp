// Memory over time, kept within the bounds of its record; and how processes ended.
#include "trace/memory_series.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "sample.h"
#include "trace/process_end.h"

namespace devsan::trace::testing {
namespace {

MemorySample sample_of(std::uint64_t number) {
  return {static_cast<std::int64_t>(number), number * 100, number, static_cast<std::uint32_t>(number), 0};
}

TEST_CASE("a curve keeps its beginning, its end, its peak, and even distances between, however long it is") {
  const std::uint64_t count = GENERATE(1, 2, 255, 256, 257, 258, 511, 512, 513, 514, 1000, 70'001);
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  MemorySeriesPayload* const series =
      recorder->add_memory_series(SeriesKind::device, recorder->intern_device("cuda:0"), SeriesClock::iterations);
  REQUIRE(series != nullptr);
  for (std::uint64_t i = 0; i < count; ++i) {
    MemorySample sample = sample_of(i);
    if (i == count / 3) sample.used = 1'000'000'000;
    add_sample(series, sample);
  }
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.memory_series().size() == 1);
  const MemorySeries& read = trace.memory_series()[0];
  CHECK(read.kind == SeriesKind::device);
  CHECK(trace.device_name(read.device) == "cuda:0");
  CHECK(read.samples.size() <= kSeriesSamples + 1);
  CHECK(read.samples.size() >= std::min<std::uint64_t>(count, kSeriesSamples / 2));
  CHECK(read.samples.front().step == 0);
  CHECK(read.samples.back().step == count - 1);
  REQUIRE(read.peak);
  CHECK(read.peak->step == count / 3);
  const std::uint32_t distance = read.samples.size() > 2 ? read.samples[1].step : 1;
  for (std::size_t i = 0; i + 1 < read.samples.size(); ++i) CHECK(read.samples[i].step == i * distance);
}

TEST_CASE("what a site keeps is read with its curve and with its holder, also when that was found later") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const DeviceSlot device = recorder->intern_device("cuda:0");
  SiteMemoryPayload* const site =
      recorder->add_site_memory(SiteId{7}, OperatorId{9}, device, SeriesClock::shared_tensors);
  REQUIRE(site != nullptr);
  for (std::uint64_t i = 0; i < 1000; ++i) add_sample(site, sample_of(i));
  CHECK(read_trace(*recorder).site_memory().at(0).holder == StringId::none);
  Recorder::set_holder(site, recorder->intern_string("losses[...]"), kHolderGraph);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.site_memory().size() == 1);
  const SiteMemory& read = trace.site_memory()[0];
  CHECK(read.site == SiteId{7});
  CHECK(read.op == OperatorId{9});
  CHECK(read.device == device);
  CHECK(read.clock == SeriesClock::shared_tensors);
  CHECK(trace.string(read.holder) == "losses[...]");
  CHECK(read.holder_flags == kHolderGraph);
  CHECK(read.samples.size() > kSiteSamples / 2);
  CHECK(read.samples.size() <= kSiteSamples + 1);
  CHECK(read.samples.front().step == 0);
  CHECK(read.samples.back().step == 999);
}

StepTime step_time_of(std::uint32_t step, std::uint64_t forward) {
  StepTime time{};
  time.begin_ns = 1'000 + step;
  time.step = step;
  time.number = step + 1;
  time.forward_ns = forward;
  time.rest_ns = 5;
  return time;
}

TEST_CASE("steps are read with the longest that was kept and the one that has not ended") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  StepSeriesPayload* const series = recorder->add_step_series();
  REQUIRE(series != nullptr);
  constexpr std::uint32_t kSteps = 5'000;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    if (keeps_next(*series)) {
      add_sample(series, step_time_of(step, step == 4'096 ? 900 : 7));
    } else {
      ++series->offered;
    }
  }
  store_sample(series->current, step_time_of(kSteps, 3));
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  const StepSeries& read = trace.step_series();
  CHECK(read.ended == kSteps);
  CHECK(read.steps.size() <= kStepSamples + 1);
  CHECK(read.steps.size() >= kStepSamples / 2);
  for (std::size_t i = 0; i + 1 < read.steps.size(); ++i) CHECK(read.steps[i + 1].step - read.steps[i].step <= 32);
  REQUIRE(read.longest);
  CHECK(read.longest->step == 4'096);
  REQUIRE(read.current);
  CHECK(read.current->step == kSteps);
  CHECK(read.current->forward_ns == 3);
}

TEST_CASE("what steps have waited for data is read beside them, from the first wait on") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  StepSeriesPayload* const series = recorder->add_step_series();
  REQUIRE(series != nullptr);
  for (std::uint32_t step = 0; step < 3; ++step) add_sample(series, step_time_of(step, 7));
  CHECK_FALSE(read_trace(*recorder).data_waits().known);
  DataWaitsPayload* const waits = recorder->add_data_waits();
  REQUIRE(waits != nullptr);
  waits->offered = series->offered;
  for (std::uint32_t step = 3; step < 600; ++step) {
    add_sample(series, step_time_of(step, 7));
    add_sample(waits, {12, step, 0, 1, 2, 3});
  }
  store_sample(waits->current, {0, 600, 601, 9, 0, 0});
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.data_waits().known);
  const auto has = [&](std::uint32_t step) {
    return std::ranges::find(trace.data_waits().steps, step, &DataWait::step) != trace.data_waits().steps.end();
  };
  for (const StepTime& step : trace.step_series().steps) CHECK(has(step.step) == (step.step >= 3));
  CHECK(has(600));
  CHECK_FALSE(has(0));
}

LiveAtPeak look_of(std::uint64_t bytes, LiveKind kind) {
  LiveAtPeak look{};
  look.allocated = bytes;
  look.listed = bytes;
  look.step = 4;
  look.moment = PeakMoment::backward_begins;
  look.kinds[static_cast<std::size_t>(kind)] = {bytes, 2};
  look.rows = 1;
  look.lines[0] = {bytes, 2, SiteId{1}, StringId::none, OperatorId{3}, kind, 0};
  return look;
}

TEST_CASE("of what was live at a peak the last look counts, and none before the first") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  PeakMemoryPayload* const peak = recorder->add_peak_memory(recorder->intern_device("cuda:0"));
  REQUIRE(peak != nullptr);
  CHECK(read_trace(*recorder).peak_memory().empty());
  store_look(peak, look_of(100, LiveKind::unknown));
  store_look(peak, look_of(300, LiveKind::activation));
  const auto last = GENERATE(LiveKind::parameter, static_cast<LiveKind>(200));
  store_look(peak, look_of(700, LiveKind::data));
  peak->looks[peak->current - 1U].lines[0].kind = last;
  peak->looks[peak->current % 2U].rows = 50'000;  // is being written
  peak->peak = 900;
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.peak_memory().size() == 1);
  const PeakMemory& read = trace.peak_memory()[0];
  CHECK(trace.device_name(read.device) == "cuda:0");
  CHECK(read.peak == 900);
  CHECK(read.allocated == 700);
  CHECK(read.step == 4);
  CHECK(read.moment == PeakMoment::backward_begins);
  CHECK(read.kinds[static_cast<std::size_t>(LiveKind::data)].bytes == 700);
  REQUIRE(read.rows.size() == 1);
  CHECK(read.rows[0].kind == (last == LiveKind::parameter ? last : LiveKind::other));
}

TEST_CASE("a look that names more rows than there is room for is read as far as there is") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  PeakMemoryPayload* const peak = recorder->add_peak_memory(recorder->intern_device("cpu"));
  store_look(peak, look_of(100, LiveKind::buffer));
  peak->looks[0].rows = 50'000;
  CHECK(read_trace(*recorder).peak_memory().at(0).rows.size() == kPeakRows);
  peak->current = 77;
  CHECK(read_trace(*recorder).peak_memory().empty());
}

TEST_CASE("a damaged site keeps the rest of the trace readable") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  SiteMemoryPayload* const site =
      recorder->add_site_memory(SiteId{7}, OperatorId{9}, DeviceSlot::none, SeriesClock::iterations);
  recorder->add_notice("behind it");
  site->site = SiteId{8};
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.site_memory().empty());
  CHECK(trace.damage().size() == 1);
  CHECK(trace.notices().size() == 1);
}

TEST_CASE("what was live when a device had no memory is read row by row, and unknown kinds as others") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  LiveMemoryPayload fixed{};
  fixed.time_ns = 5;
  fixed.tid = 17;
  fixed.allocated = 700;
  const LiveMemoryRow rows[] = {
      {600, 2, SiteId{1}, recorder->intern_string("encoder"), OperatorId{3}, LiveKind::parameter, 0},
      {90, 1, SiteId{2}, StringId::none, OperatorId{4}, static_cast<LiveKind>(200), 0}};
  recorder->add_live_memory(fixed, rows);
  recorder->add_live_memory(fixed, {});
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.live_memory().size() == 2);
  const LiveMemory& live = trace.live_memory()[0];
  CHECK(live.fixed.tid == 17);
  CHECK(live.fixed.allocated == 700);
  REQUIRE(live.rows.size() == 2);
  CHECK(live.rows[0].bytes == 600);
  CHECK(live.rows[0].kind == LiveKind::parameter);
  CHECK(trace.string(live.rows[0].module) == "encoder");
  CHECK(live.rows[1].kind == LiveKind::other);
  CHECK(trace.live_memory()[1].rows.empty());
}

TEST_CASE("a curve that was being thinned out when its process ended reads as it was before or after") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  MemorySeriesPayload* const series =
      recorder->add_memory_series(SeriesKind::host, DeviceSlot::none, SeriesClock::iterations);
  for (std::uint64_t i = 0; i < kSeriesSamples; ++i) add_sample(series, sample_of(i));
  for (std::size_t i = 1; i < 10; ++i) store_sample(series->samples[i], series->samples[i * 2]);
  atom(series->samples[10].number).store(0);  // about to be written
  const MemorySeries read = read_trace(*recorder).memory_series()[0];
  for (std::size_t i = 0; i + 1 < read.samples.size(); ++i) {
    CHECK(read.samples[i].step < read.samples[i + 1].step);
    CHECK(read.samples[i].used == read.samples[i].step * 100);
  }
  CHECK(read.samples.back().step == kSeriesSamples - 1);
}

TEST_CASE("the ends of children are kept with their time") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  recorder->add_child_end(4711, SIGKILL);
  recorder->add_child_end(4712, 3 << 8);
  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.child_ends().size() == 2);
  CHECK(trace.child_ends()[0].pid == 4711);
  CHECK(WTERMSIG(trace.child_ends()[0].status) == SIGKILL);
  CHECK(WEXITSTATUS(trace.child_ends()[1].status) == 3);
  CHECK(trace.child_ends()[0].time_ns >= trace.header().start_time_ns);
}

TEST_CASE("who waited for a process can tell its end to its trace, and to no other") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const auto pid = static_cast<std::uint32_t>(getpid());
  CHECK(read_trace(*recorder).header().told_end.told_by == kToldByNobody);
  CHECK(!tell_end(recorder->path(), pid + 1, {kToldByWaiter, SIGKILL, 0, 0}));
  CHECK(read_trace(*recorder).header().told_end.told_by == kToldByNobody);
  CHECK(tell_end(recorder->path(), pid, {kToldByWaiter, SIGKILL, 2, kKillsCounted}));
  const ToldEnd told = read_trace(*recorder).header().told_end;
  CHECK(told.told_by == kToldByWaiter);
  CHECK(told.status == SIGKILL);
  CHECK(told.oom_kills == 2);
  CHECK(told.oom_evidence == kKillsCounted);
  CHECK(!tell_end((directory.path() / "none").c_str(), pid, {kToldByWaiter, 0, 0, 0}));
}

TEST_CASE("a process tells the status of its exit, and who waited for it has the last word") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  recorder->note_exit_status(0x103);
  recorder->close(CloseMark::exited);
  recorder->note_exit_status(0);
  const ToldEnd own = read_trace(*recorder).header().told_end;
  CHECK(own.told_by == kToldByItself);
  CHECK(WEXITSTATUS(own.status) == 3);
  CHECK(tell_end(recorder->path(), static_cast<std::uint32_t>(getpid()), {kToldByWaiter, SIGABRT, 0, 0}));
  const ToldEnd told = read_trace(*recorder).header().told_end;
  CHECK(told.told_by == kToldByWaiter);
  CHECK(WTERMSIG(told.status) == SIGABRT);
}

TEST_CASE("a process that runs has not ended, and of another host's nobody knows") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  FileHeader header = read_trace(*recorder).header();
  CHECK(has_ended(header) == std::optional(false));
  header.start_ticks += 1;  // its pid belongs to another by now
  CHECK(has_ended(header) == std::optional(true));
  header.host = {'e', 'l', 's', 'e'};
  CHECK(!has_ended(header));
}

}  // namespace
}  // namespace devsan::trace::testing
