// Paths on the stack.
#pragma once

#include <cstddef>

#include "trace/fixed_text.h"

namespace devsan {

inline constexpr std::size_t kPathSize = 4096;
using FixedPath = FixedText<kPathSize>;

// The directory of `path`, without its last `levels` parts.
inline FixedPath parent_path(const char* path, int levels) noexcept {
  std::string_view text = path;
  for (int i = 0; i < levels; ++i) {
    const std::size_t slash = text.rfind('/');
    text = slash == std::string_view::npos ? std::string_view() : text.substr(0, slash);
  }
  return FixedPath(text);
}

inline FixedPath path_in(std::string_view directory, std::string_view name) noexcept {
  FixedPath path(directory);
  path.append("/").append(name);
  return path;
}

}  // namespace devsan
