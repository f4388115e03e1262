// Looks once a step where the program keeps its tensors, and within a step when one of them has been moved (moves.h),
// and writes down what is new. What was expected where, the report knows.
#pragma once

#include <cstdint>

#include "trace/placement_layout.h"

namespace devsan::hooks {

// Whether so much time has gone by that the next look keeps what all of them cost below half a percent of the time.
bool placements_are_due() noexcept;
// The same within a step, by a share of that time which is its own.
bool look_in_step_is_due() noexcept;

// `thread` is the calling one's PyThreadState. Waits for the interpreter's lock: only where the thread may.
void look_at_placements(const void* thread, trace::LookedAt when) noexcept;

// The last look, at the end of the interpreter. `left`: the innermost frame that an exception has left; may be null.
// With the GIL, within a PythonSection.
void look_at_last_placements(const void* left) noexcept;

}  // namespace devsan::hooks
