// How the writer puts a record into the event section once it has room there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "trace/crc32c.h"
#include "trace/file_access.h"
#include "trace/file_layout.h"

namespace devsan::trace {

inline constexpr std::size_t kMaxPart = std::numeric_limits<std::uint16_t>::max();

inline FileHeader& header_of(std::byte* base) noexcept {
  return *reinterpret_cast<FileHeader*>(base);
}

// The second half of a RecordHeader goes out as one word: a record is there with its kind and checksum, or not at all.
inline void publish(std::byte* payload, RecordKind kind, std::span<const std::byte> checked) noexcept {
  std::byte* const second_half = payload - sizeof(std::uint64_t);
  const std::uint64_t word = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(crc32c(checked))
                                                                    << (8 * sizeof(std::uint32_t));
  atom(*reinterpret_cast<std::uint64_t*>(second_half)).store(word, std::memory_order_release);
}
static_assert(offsetof(RecordHeader, kind) == 8 && offsetof(RecordHeader, checksum) == 12);

template <class Part>
std::span<const Part> at_most(std::span<const Part> parts) noexcept {
  return parts.first(std::min(parts.size(), kMaxPart));
}

template <class Part>
std::byte* append(std::byte* to, std::span<const Part> parts) noexcept {
  if (!parts.empty()) std::memcpy(to, parts.data(), parts.size_bytes());
  return to + parts.size_bytes();
}

// A record that never changes: its head, then one kind of parts.
template <class Head, class Part>
void publish_whole(std::byte* place, RecordKind kind, const Head& head, std::span<const Part> parts,
                   std::size_t size) noexcept {
  std::memcpy(place, &head, sizeof(head));
  append(place + sizeof(head), parts);
  publish(place, kind, {place, size});
}

}  // namespace devsan::trace
