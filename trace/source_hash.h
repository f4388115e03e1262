// Tells whether a file is still what it was when a process recorded it.
#pragma once

#include <cstdint>
#include <string_view>

namespace devsan::trace {

// FNV-1a, 64 bits.
constexpr std::uint64_t source_hash(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}
static_assert(source_hash("a") == 0xaf63dc4c8601ec8cu);

}  // namespace devsan::trace
