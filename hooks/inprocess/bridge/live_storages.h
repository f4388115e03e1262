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

// The origin of the storage on a device whose data begins in these bytes; `none` where that is not known. A tensor on
// the CPU may have been made over them, too. Once what it needs has been prepared it allocates nothing, and is safe in
// a signal handler.
trace::LineageId origin_of_memory(const void* begin, std::uint64_t bytes, trace::DeviceSlot device) noexcept;
void prepare_to_find_storages() noexcept;

}  // namespace devsan::hooks
