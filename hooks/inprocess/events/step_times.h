// When iterations and their phases were: one record in the trace that is written when a phase changes. Of a long run
// some iterations are kept, at even distances (trace/memory_series.h). Two threads that train at once may spoil each
// other's times, and nothing else.
#pragma once

#include <cstdint>

namespace devsan::hooks {

// The first forward operator of an iteration.
void note_step_begins(std::uint32_t step) noexcept;

// The outermost call of autograd's engine.
void note_backward_begins() noexcept;
void note_backward_ends() noexcept;

// The thread that trains has waited for a loader of data, since this time of CLOCK_MONOTONIC.
void note_data_waited(std::int64_t begin) noexcept;

// An optimizer's operator: the first of an iteration; and any, where runtime.timed_step is the iteration.
void note_optimizer_begins() noexcept;
void note_optimizer_runs() noexcept;

}  // namespace devsan::hooks
