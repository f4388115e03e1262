// What can be said of a process's end from outside of it.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/file_layout.h"

namespace devsan::trace {

// Whether the process that wrote a trace has ended; nothing where that cannot be told: it ran on another host, or in a
// container that cannot be seen from here.
std::optional<bool> has_ended(const FileHeader& header) noexcept;

// Writes into the trace of a process that has ended how it did. False where the file is no trace of that process.
bool tell_end(const char* path, std::uint32_t pid, const ToldEnd& end) noexcept;

}  // namespace devsan::trace
