// Reads memory of this process that another thread may be giving back at the same moment: where nothing is mapped any
// more the kernel says so, instead of a fault.
#pragma once

#include <cstdint>
#include <span>

namespace devsan::hooks {

// Reads the eight bytes at each address into `words`, as many. What cannot be read is 0. False where the kernel allows
// no such reads; then `words` is all 0. Changes no errno.
bool read_own_words(std::span<const char* const> addresses, std::span<std::uint64_t> words) noexcept;

}  // namespace devsan::hooks
