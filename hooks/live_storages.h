// The storages that operators have made and that live now, from their tags: no storage is held, locked or asked, and
// storages of other threads may die while they are looked at.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/file_layout.h"

namespace devsan::hooks {

class LiveStorageVisitor {
 public:
  // `storage` may be gone already: an address, not to be followed.
  virtual void storage(const void* storage, trace::LineageId node, std::uint64_t bytes) noexcept = 0;

 protected:
  ~LiveStorageVisitor() = default;
};

// Tells of each of them once. False where the sizes of storages cannot be read: then nothing is told.
bool visit_live_storages(LiveStorageVisitor& visitor) noexcept;

}  // namespace devsan::hooks
