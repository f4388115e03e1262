// Finds what keeps the tensors of a site alive: among the objects that the main thread's frames lead to.
#pragma once

#include <cstddef>
#include <span>

#include "hooks/site_memory.h"

namespace devsan::hooks {

inline constexpr std::size_t kSitesOfSearch = 32;

// Asks the interpreter to look between two of its instructions, when it holds its lock anyway: to wait for the lock
// here could be to wait for ever. What is found is written to the sites' records. False where nobody will look: there
// is no interpreter, or the one before has not begun.
bool search_holders_soon(std::span<const GrowingSite> sites) noexcept;

}  // namespace devsan::hooks
