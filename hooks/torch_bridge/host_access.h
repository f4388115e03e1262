// Findings of code on the host that follows a device pointer. The simulation tells of it, in a signal handler.
#pragma once

#include "preload/hooks_abi.h"

namespace devsan::hooks {

// To be called once, before the first access.
void prepare_for_host_accesses() noexcept;

// Writes the finding: which line and which code touched the memory of which tensor. Safe in a signal handler of the
// thread that did; one thread at a time.
void note_host_access(const HostAccess& access) noexcept;

}  // namespace devsan::hooks
