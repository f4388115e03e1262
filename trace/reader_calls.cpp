// The records of device calls and of memory over time. What changes in place is under no checksum: it is checked here.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "trace/reader_loader.h"

namespace devsan::trace {
namespace {

template <class Payload>
bool copy_whole(std::span<const std::byte> payload, Payload& to) {
  if (payload.size() != sizeof(Payload)) return false;
  std::memcpy(&to, payload.data(), sizeof(Payload));
  return true;
}

bool known(DeviceCallKind kind) {
  switch (kind) {
    case DeviceCallKind::none:
      return false;
#define DEVSAN_DEVICE_CALL(enumerator, number, name, text) case DeviceCallKind::enumerator:
#include "trace/device_call_kinds.def"
#undef DEVSAN_DEVICE_CALL
      return true;
  }
  return false;
}

bool known(MemorySpace space) {
  switch (space) {
    case MemorySpace::none:
#define DEVSAN_MEMORY_SPACE(enumerator, number, name, text) case MemorySpace::enumerator:
#include "trace/memory_spaces.def"
#undef DEVSAN_MEMORY_SPACE
      return true;
  }
  return false;
}

bool known(SeriesKind kind) {
  switch (kind) {
    case SeriesKind::none:
      return false;
#define DEVSAN_MEMORY_SERIES(enumerator, number, name, text) case SeriesKind::enumerator:
#include "trace/memory_series.def"
#undef DEVSAN_MEMORY_SERIES
      return true;
  }
  return false;
}

bool known(CopyDirection direction) {
  return direction <= CopyDirection::host_to_host;
}

bool known(SeriesClock clock) {
  switch (clock) {
#define DEVSAN_SERIES_CLOCK(enumerator, number, name, step, text) case SeriesClock::enumerator:
#include "trace/series_clocks.def"
#undef DEVSAN_SERIES_CLOCK
    return true;
  }
  return false;
}

bool known(LiveKind kind) {
  switch (kind) {
    case LiveKind::other:
#define DEVSAN_LIVE_KIND(enumerator, number, name, text) case LiveKind::enumerator:
#include "trace/live_kinds.def"
#undef DEVSAN_LIVE_KIND
      return true;
  }
  return false;
}

void make_sound(LiveMemoryRow& row) {
  if (!known(row.kind)) row.kind = LiveKind::other;  // of a later version
}

// Those that are there, oldest first. While a full record is thinned out a sample may stand at two places; its number
// tells.
template <class Series>
auto samples_of(const Series& told) {
  using Sample = typename decltype(Series::samples)::value_type;
  std::vector<Sample> samples;
  std::ranges::copy_if(told.samples, std::back_inserter(samples), [](const Sample& s) { return s.number; });
  if (told.latest.number != 0) samples.push_back(told.latest);
  std::ranges::sort(samples, {}, &Sample::number);
  const auto doubles = std::ranges::unique(samples, {}, &Sample::number);
  samples.erase(doubles.begin(), doubles.end());
  return samples;
}

}  // namespace

bool TraceFile::Loader::take_device_call(std::span<const std::byte> payload) {
  DeviceCallPayload call;
  if (!copy_whole(payload, call)) return false;
  if (!known(call.kind) || !known(call.space) || !known(call.direction)) return true;  // of a later version
  file_.device_calls_.push_back(call);
  return true;
}

bool TraceFile::Loader::take_device_memory(std::span<const std::byte> payload) {
  DeviceMemoryPayload memory;
  if (!copy_whole(payload, memory)) return false;
  if (!known(memory.space) || memory.space == MemorySpace::none) return true;
  // Two words that are changed one after the other.
  memory.peak = std::max(memory.peak, memory.live);
  file_.device_memory_.push_back(memory);
  return true;
}

bool TraceFile::Loader::take_call_ring(std::span<const std::byte> payload) {
  if (payload.size() != sizeof(CallRingPayload)) return false;
  std::uint64_t next = 0;
  std::memcpy(&next, payload.data(), sizeof(next));
  // Threads that made the first call at once have left rings behind that nobody used.
  if (next == 0) return true;
  file_.last_calls_ = {next, {}};
  for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(next, kCallRingEntries); ++back) {
    const std::uint64_t number = next - back;
    DeviceCallEvent event;
    const std::size_t at = offsetof(CallRingPayload, entries) + number % kCallRingEntries * sizeof(event);
    std::memcpy(&event, payload.data() + at, sizeof(event));
    // Of several threads some may not be done with theirs.
    if (event.sequence != static_cast<std::uint32_t>(number) + 1) continue;
    if (known(event.kind) && known(event.space) && known(event.direction)) file_.last_calls_.last.push_back(event);
  }
  return true;
}

bool TraceFile::Loader::take_memory_series(std::span<const std::byte> payload) {
  MemorySeriesPayload told;
  if (!copy_whole(payload, told)) return false;
  if (!known(told.kind)) return true;  // of a later version
  MemorySeries series;
  series.kind = told.kind;
  series.device = told.device;
  series.clock = known(told.clock) ? told.clock : SeriesClock::iterations;
  if (told.peak.number != 0) series.peak = told.peak;
  series.samples = samples_of(told);
  file_.memory_series_.push_back(std::move(series));
  return true;
}

bool TraceFile::Loader::take_step_series(std::span<const std::byte> payload) {
  StepSeriesPayload told;
  if (!copy_whole(payload, told)) return false;
  StepSeries& series = file_.step_series_;
  series.ended = told.offered;
  series.steps = samples_of(told);
  if (told.peak.number != 0) series.longest = told.peak;
  if (told.current.number != 0) series.current = told.current;
  return true;
}

bool TraceFile::Loader::take_data_waits(std::span<const std::byte> payload) {
  DataWaitsPayload told;
  if (!copy_whole(payload, told)) return false;
  DataWaits& waits = file_.data_waits_;
  waits.known = true;
  waits.steps = samples_of(told);
  if (told.peak.number != 0) waits.steps.push_back(told.peak);
  if (told.current.number != 0) waits.steps.push_back(told.current);
  return true;
}

bool TraceFile::Loader::take_peak_memory(std::span<const std::byte> payload) {
  PeakMemoryPayload told;
  if (!copy_whole(payload, told)) return false;
  if (told.current != 1 && told.current != 2) return true;  // nothing was looked at
  const LiveAtPeak& look = told.looks[told.current - 1U];
  PeakMemory read;
  read.device = told.device;
  read.peak = told.peak;
  read.peak_step = told.peak_step;
  read.in_backward = told.in_backward == 1;
  read.time_ns = look.time_ns;
  read.allocated = look.allocated;
  read.reserved = look.reserved;
  read.listed = look.listed;
  read.step = look.step;
  read.moment = look.moment <= PeakMoment::backward_ended ? look.moment : PeakMoment::none;
  read.kinds = look.kinds;
  const auto rows = std::min<std::size_t>(look.rows, kPeakRows);
  read.rows.assign(look.lines.begin(), look.lines.begin() + static_cast<std::ptrdiff_t>(rows));
  std::ranges::for_each(read.rows, make_sound);
  file_.peak_memory_.push_back(std::move(read));
  return true;
}

bool TraceFile::Loader::take_site_memory(std::span<const std::byte> payload) {
  SiteMemoryPayload told;
  if (!copy_whole(payload, told)) return false;
  const SeriesClock clock = known(told.clock) ? told.clock : SeriesClock::iterations;
  file_.site_memory_.push_back(
      {told.site, told.op, told.device, clock, samples_of(told), told.holder, told.holder_flags, told.holder_site});
  return true;
}

bool TraceFile::Loader::take_live_memory(std::span<const std::byte> payload) {
  LiveMemory live;
  if (payload.size() < sizeof(live.fixed)) return false;
  std::memcpy(&live.fixed, payload.data(), sizeof(live.fixed));
  const auto rest = payload.subspan(sizeof(live.fixed));
  if (rest.size() != live.fixed.rows * sizeof(LiveMemoryRow)) return false;
  live.rows.resize(live.fixed.rows);
  if (!rest.empty()) std::memcpy(live.rows.data(), rest.data(), rest.size());
  std::ranges::for_each(live.rows, make_sound);
  file_.live_memory_.push_back(std::move(live));
  return true;
}

}  // namespace devsan::trace
