// The bytes of a storage that a tensor covers, so that views of one buffer can be told apart: slots of a ring of pinned
// memory, columns of a table.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace devsan::hooks {

struct Extent {
  const void* storage = nullptr;  // StorageImpl; only compared
  std::uint64_t begin = 0;        // bytes from the storage's start; all of it where nothing else is said
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t period = 0;  // not 0: the first `width` bytes of every `period`, from `begin` on
  std::uint64_t width = 0;
};

// Of a strided tensor; sizes, strides and offset count elements, as PyTorch's do.
Extent extent_of(const void* storage, std::uint64_t itemsize, std::int64_t offset, std::span<const std::int64_t> sizes,
                 std::span<const std::int64_t> strides) noexcept;

// Never false where they share a byte; nothing shares one with no storage. True, too, for gaps in more than one
// dimension that fit into one another.
bool overlap(const Extent& one, const Extent& other) noexcept;

}  // namespace devsan::hooks
