// Files that a person knows by another name than the program does: a notebook calls its cells "In [3]".
#pragma once

#include <cstdint>

namespace devsan::trace {

// The text of this line of a file is what to call the file.
inline constexpr std::int32_t kTitleLine = 0;

}  // namespace devsan::trace
