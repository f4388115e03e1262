// The bytes of the record of steps, by the rules of trace/file_layout.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace devsan::trace {

// One iteration, from its first forward operator to that of the next. In this order; what lies between a backward and
// the optimizer has a time of its own.
struct StepTime {
  std::int64_t begin_ns;  // CLOCK_REALTIME
  std::uint32_t step;
  std::uint32_t number;  // as that of a MemorySample
  std::uint64_t forward_ns;
  std::uint64_t backward_ns;
  std::uint64_t between_ns;
  std::uint64_t optimizer_ns;  // from its first operator to its last
  std::uint64_t rest_ns;       // up to the next iteration: data, logging, evaluation
};
static_assert(sizeof(StepTime) == 56);

inline constexpr std::size_t kStepSamples = 256;

// One for each process. All but the last word changes in place.
struct StepSeriesPayload {
  std::uint64_t offered;  // iterations that have ended
  std::uint32_t stride;   // one of so many is kept; 0 as long as it is 1
  std::uint32_t reserved_in_place;
  StepTime latest;   // that was kept
  StepTime peak;     // the longest that was kept
  StepTime current;  // that has not ended, as far as it has come
  std::array<StepTime, kStepSamples> samples;
  std::uint64_t sample_count;  // kStepSamples
};
static_assert(sizeof(StepSeriesPayload) == 56 * kStepSamples + 192);
inline constexpr std::size_t kStepSeriesMutableBytes = offsetof(StepSeriesPayload, sample_count);

// Of the same iteration as a StepTime: how much of it the thread that trains waited for a loader of data. Those parts
// are contained in the times of the StepTime.
struct DataWait {
  std::uint64_t step_ns;  // the whole iteration
  std::uint32_t step;
  std::uint32_t number;  // as that of a MemorySample
  std::uint64_t forward_ns;
  std::uint64_t between_ns;
  std::uint64_t rest_ns;
};
static_assert(sizeof(DataWait) == 40);

// One for each process whose waits can be seen, beside its StepSeries, with the same iterations at the same places. All
// but the last word changes in place.
struct DataWaitsPayload {
  std::uint64_t offered;
  std::uint32_t stride;
  std::uint32_t reserved_in_place;
  DataWait latest;
  DataWait peak;
  DataWait current;
  std::array<DataWait, kStepSamples> samples;
  std::uint64_t sample_count;  // kStepSamples
};
static_assert(sizeof(DataWaitsPayload) == 40 * kStepSamples + 144);
inline constexpr std::size_t kDataWaitsMutableBytes = offsetof(DataWaitsPayload, sample_count);

}  // namespace devsan::trace
