// The option `hang_after`: a thread of devsan's own looks now and then whether a collective of the process is not over
// after so many seconds, and then records where every thread is, once. There is no such thread without the option.
#pragma once

namespace devsan::hooks {

// A collective has been entered: begins to watch, unless that has begun already.
void watch_for_hangs() noexcept;

// In a child of a fork, which has no such thread.
void reset_hang_watch_after_fork() noexcept;

}  // namespace devsan::hooks
