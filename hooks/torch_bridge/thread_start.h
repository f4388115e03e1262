// What happens at a thread's first operator, and at the first one in a fork child.
#pragma once

#include "hooks/inprocess/common/thread_state.h"

namespace devsan::hooks {

// Gives the thread its ring and its site cache, and a fork child its own trace file. Where no file can be had, the
// thread goes on without recording.
[[gnu::cold]] void start_thread(ThreadState& state) noexcept;

}  // namespace devsan::hooks
