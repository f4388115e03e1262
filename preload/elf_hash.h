// The hash of DT_GNU_HASH.
#pragma once

#include <cstdint>

namespace devsan {

inline std::uint32_t gnu_hash_of(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace devsan
