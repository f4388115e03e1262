// Tells the origin table when a storage dies, however it was made. A storage is deleted through its virtual destructor;
// the entry of StorageImpl's virtual table is replaced by one that erases the tag first.
#pragma once

#include <c10/core/StorageImpl.h>

#include <cstring>

namespace devsan::hooks {

// False where the virtual table is not laid out as expected; then nothing may be tagged.
bool watch_storage_release() noexcept;

// The virtual table that is watched; null where none is.
extern const void* watched_table;

inline const void* virtual_table(const c10::StorageImpl* storage) noexcept {
  const void* table;
  std::memcpy(&table, static_cast<const void*>(storage), sizeof table);
  return table;
}

// Whether a storage is deleted through the table that is watched: subclasses of other backends are not.
inline bool tells_when_it_dies(const c10::StorageImpl* storage) noexcept {
  return virtual_table(storage) == watched_table;
}

}  // namespace devsan::hooks
