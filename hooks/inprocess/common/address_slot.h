// Where a table that is keyed by addresses of objects begins to look.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace devsan::hooks {

// One of `size` slots. Objects lie at multiples of 16 at least, so the lowest four bits of an address tell nothing.
template <std::size_t size>
constexpr std::size_t slot_of_address(std::uintptr_t address) noexcept {
  static_assert(std::has_single_bit(size) && size > 1);
  return static_cast<std::size_t>((address >> 4) * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(size)));
}

template <std::size_t size>
std::size_t slot_of_address(const void* address) noexcept {
  return slot_of_address<size>(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace devsan::hooks
