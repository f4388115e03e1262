// Faults of programs that touch guarded device pages (guarded_pages.h): each is told of, and goes on to be what it
// would be without devsan: the program's own handler is called, or the process ends by the same signal. A fault in
// pinned memory that is closed (pinned_pages.h) is told of, and the program goes on.
#pragma once

#include <atomic>

#include "preload/hooks_abi.h"

namespace devsan::sim {

// Puts a handler of SIGSEGV before the one that is there, the first time; a handler that the program installs later
// takes its place. `watch` is told of accesses once it is there.
void watch_host_faults(const std::atomic<const DeviceWatch*>* watch) noexcept;

// Python's faulthandler, which a program turns on at any time, is followed: where it took our place, ours comes before
// it again. To be called now and then, by any thread; one system call.
void stay_before_faulthandler() noexcept;

// The same, and whether the handler is the one that is called.
bool host_faults_are_seen() noexcept;

}  // namespace devsan::sim
