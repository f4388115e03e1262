// Pages of pinned memory that the host is not to touch while a copy may still be at work on them. Who does it all the
// same faults, is told of (host_faults.h), and goes on with the pages open. So arrays of NumPy over pinned memory are
// seen, which no operator uses.
//
// What is said to be safe in a signal handler takes no lock and allocates nothing.
#pragma once

#include "preload/hooks_abi.h"

namespace devsan::sim {

// Lets the hooks close pages (PinnedPages). Called at most once, before anything is pinned.
void offer_pinned_pages(const HostServices& host);

// The memory that begins at `block` is about to be given back.
void forget_pinned_pages(const void* block) noexcept;

enum class Touch {
  none,    // the address is in no memory that was ever closed
  open,    // another thread has opened it by now
  closed,  // it was closed
};
// Opens the memory that an address lies in. Safe in a signal handler.
Touch touch_pinned_pages(const void* address) noexcept;

}  // namespace devsan::sim
