// Tells the origin table when a storage dies, however it was made. A storage is deleted through its virtual destructor;
// the entry of StorageImpl's virtual table is replaced by one that erases the tag first.
#pragma once

#include <c10/core/StorageImpl.h>

namespace devsan::hooks {

// False where the virtual table is not laid out as expected; then nothing may be tagged.
bool watch_storage_release() noexcept;

// Whether a storage is deleted through the table that is watched: subclasses of other backends are not.
bool tells_when_it_dies(const c10::StorageImpl* storage) noexcept;

}  // namespace devsan::hooks
