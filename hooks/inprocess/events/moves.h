// Copies to another device of what the program keeps, while a step of its training runs: a look at the step's end
// misses what is moved back before then. The next operator of another line looks again (look_after_move.h).
//
// Addresses alone, which are never followed: one that belongs to something else by then costs a look. Nothing here
// takes a lock or allocates.
#pragma once

#include <cstdint>

#include "hooks/inprocess/common/thread_state.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// By a look: the program keeps what lies in this storage.
void keep_in_mind(const void* storage) noexcept;

// An operator has copied what lies in a storage to another device, on the line of the thread's running operator.
void note_move(const ThreadState& state, const void* storage) noexcept;

// A step begins, or its optimizer does: what was moved since the last one is about to be used. `first`: of the process,
// and everything is.
void note_use_begins(const ThreadState& state, bool first) noexcept;

// What an operator that is about to run has to know where `attention` has kLookWanted.
struct WantedLook {
  std::uint32_t tid = 0;                     // whose operator looks
  trace::SiteId line = trace::SiteId::none;  // of the move, which may not be over before another line runs; or none
};
WantedLook wanted_look() noexcept;

// The look is taken, or nobody will take it.
void drop_wanted_look() noexcept;
// Nothing trains before the next step does.
void put_off_wanted_look() noexcept;

}  // namespace devsan::hooks
