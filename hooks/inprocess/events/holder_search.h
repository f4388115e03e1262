// Finds what keeps the tensors of a site alive: among the objects that the frames of all threads lead to.
#pragma once

#include <cstddef>
#include <span>

#include "hooks/inprocess/events/site_memory.h"

namespace devsan::hooks {

inline constexpr std::size_t kSitesOfSearch = 32;

// Asks the interpreter to look between two of its instructions, when it holds its lock anyway: to wait for the lock
// here could be to wait for ever. The main thread does that, and it may do nothing but wait for another one: a thread
// that knows when it can wait for the lock calls search_holders_now(). What is found is written to the sites' records.
// False where nobody will look: there is no interpreter, or the search before has not begun.
// `graphs`: also looks for a graph that has become longer since an earlier such search. `step` is that of iterations.
bool search_holders_soon(std::span<const GrowingSite> sites, bool graphs, std::uint32_t step) noexcept;

// Whether nobody has looked yet.
bool holders_are_wanted() noexcept;

// `thread` is the calling one's PyThreadState. Waits for the interpreter's lock, and does nothing where somebody else
// has looked in the meantime.
void search_holders_now(const void* thread) noexcept;

}  // namespace devsan::hooks
