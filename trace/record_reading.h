// How the reader takes records apart. Who calls this has compared the sizes.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace devsan::trace {

template <class Payload>
Payload read(std::span<const std::byte> bytes) {
  Payload payload;
  std::memcpy(&payload, bytes.data(), sizeof(payload));
  return payload;
}

template <class Part>
std::vector<Part> take(std::span<const std::byte>& rest, std::size_t count) {
  std::vector<Part> parts(count);
  if (count > 0) std::memcpy(parts.data(), rest.data(), count * sizeof(Part));
  rest = rest.subspan(count * sizeof(Part));
  return parts;
}

}  // namespace devsan::trace
