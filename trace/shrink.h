// Gives back the disk space that a finished process had reserved for its trace and not used. The file keeps its length:
// what is given back becomes a hole, which reads as zeros.
#pragma once

#include <cstdint>

namespace devsan::trace {

// Returns the bytes asked back: 0 for a file that is no trace of this host, whose process still runs, or on a file
// system without holes.
std::uint64_t give_back_unused(const char* path) noexcept;

}  // namespace devsan::trace
