// Pages of memory, which is what is closed and opened.
#pragma once

#include <cstddef>

namespace devsan::sim {

inline constexpr std::size_t kPageBytes = 4096;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace devsan::sim
