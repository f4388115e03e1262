// Keeps a record of memory, or of steps, over time within its bounds: when it is full, every second sample goes, and
// from then on half as many are taken. One thread at a time; a process killed at any instruction leaves whole samples.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "trace/file_access.h"
#include "trace/memory_layout.h"
#include "trace/step_layout.h"

namespace devsan::trace {

// What the peak is the highest of.
inline std::uint64_t height_of(const MemorySample& sample) noexcept {
  return sample.used;
}
inline std::uint64_t height_of(const StepTime& step) noexcept {
  return step.forward_ns + step.backward_ns + step.between_ns + step.optimizer_ns + step.rest_ns;
}
inline std::uint64_t height_of(const DataWait& wait) noexcept {
  return wait.step_ns;
}

// A sample without its number is not there.
template <class Sample>
inline void store_sample(Sample& place, const Sample& sample) noexcept {
  atom(place.number).exchange(0, std::memory_order_acq_rel);  // nothing is written before it
  Sample unnumbered = sample;
  unnumbered.number = 0;
  place = unnumbered;
  atom(place.number).store(sample.number, std::memory_order_release);
}

// Whether the next sample is one of those that are kept at even distances.
template <class Series>
inline bool keeps_next(const Series& series) noexcept {
  return series.offered % (series.stride != 0 ? series.stride : 1) == 0;
}

// `Series` is a MemorySeriesPayload, a SiteMemoryPayload, a StepSeriesPayload or a DataWaitsPayload. `sample.number` is
// set here.
template <class Series>
inline void add_sample(Series* series, typename decltype(Series::samples)::value_type sample) noexcept {
  constexpr std::size_t kRoom = std::tuple_size_v<decltype(Series::samples)>;
  if (series == nullptr) return;
  const std::uint64_t count = series->offered;
  sample.number = static_cast<std::uint32_t>(count) + 1;
  store_sample(series->latest, sample);
  if (height_of(sample) > height_of(series->peak) || count == 0) store_sample(series->peak, sample);
  const std::uint32_t stride = series->stride != 0 ? series->stride : 1;
  if (count % stride == 0) {
    std::uint64_t at = count / stride;
    if (at == kRoom) {
      for (std::size_t i = 1; i < kRoom / 2; ++i) store_sample(series->samples[i], series->samples[i * 2]);
      for (std::size_t i = kRoom / 2; i < kRoom; ++i) atom(series->samples[i].number).store(0);
      series->stride = stride * 2;
      at /= 2;
    }
    store_sample(series->samples[at], sample);
  }
  atom(series->offered).store(count + 1, std::memory_order_release);
}

// As if no sample had been offered.
template <class Series>
inline void clear_samples(Series* series) noexcept {
  if (series == nullptr) return;
  atom(series->offered).store(0, std::memory_order_release);
  series->stride = 0;
  atom(series->latest.number).store(0, std::memory_order_release);
  atom(series->peak.number).store(0, std::memory_order_release);
  for (auto& sample : series->samples) atom(sample.number).store(0, std::memory_order_release);
}

// Makes a look the one that counts. A process killed at any instruction leaves a whole one.
inline void store_look(PeakMemoryPayload* peak, const LiveAtPeak& look) noexcept {
  if (peak == nullptr) return;
  const std::uint8_t other = peak->current == 1 ? 2 : 1;
  peak->looks[other - 1U] = look;
  atom(peak->current).store(other, std::memory_order_release);
}

}  // namespace devsan::trace
