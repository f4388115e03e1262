// A file that the options of the process name.
#pragma once

#include <cstddef>
#include <string>

namespace devsan {

// Its first `most` bytes. False, with errno, where it cannot be read, or is no regular file.
bool read_given_file(const std::string& path, std::size_t most, std::string* text) noexcept;

}  // namespace devsan
