// Which storages were copied to another device, and where: the newest copy of each. Written where an operator returned
// a copy, which is no hot path; read when an operator has failed.
//
// Never stale: an entry counts only while the storage's tag says that there is one, and the tag dies with the storage.
// A table of fixed size: a newer copy of another storage may take the place of an older one.
#pragma once

#include <c10/core/StorageImpl.h>

#include <optional>

#include "trace/file_layout.h"

namespace devsan::hooks {

struct Copy {
  trace::SiteId site = trace::SiteId::none;
  trace::DeviceSlot device = trace::DeviceSlot::none;
};

// `source` is alive, and was copied to `device`. Any thread, with or without the GIL.
void note_copy(const c10::StorageImpl* source, const Copy& copy) noexcept;
std::optional<Copy> find_copy(const c10::StorageImpl* source) noexcept;

// In a fork child: a lock that another thread of the parent held is free again.
void reset_copies_after_fork() noexcept;

}  // namespace devsan::hooks
