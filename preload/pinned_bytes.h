// Host memory that is pinned, in bytes: added up by whoever sees it, CUDA's calls or the simulation.
#pragma once

#include <atomic>
#include <cstdint>

namespace devsan {

inline constinit std::atomic<std::uint64_t> g_pinned_bytes{0};

}  // namespace devsan
