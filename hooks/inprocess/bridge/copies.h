// What was done with a storage that left it where it was: it was copied to another device; asked to go to the device
// that it was on already; copied into pinned memory. Of each, where that happened last. Written where an operator
// returned, which is no hot path; read when an operator has failed, or copied what is not pinned.
//
// Never stale: an entry counts only while the storage's tag says that there is one, and the tag dies with the storage.
// Tables of fixed size: a newer entry of another storage may take the place of an older one.
#pragma once

#include <cstdint>
#include <optional>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

struct Copy {
  trace::SiteId site = trace::SiteId::none;
  std::uint32_t calls = 0;  // that led there, as trace::LineageNode has them
  trace::DeviceSlot device = trace::DeviceSlot::none;
};

enum class Copied : std::uint8_t {
  away,     // to another device
  nowhere,  // it was where it should go, and is the result itself
  pinned,   // into pinned memory
};

// `source` is alive. Any thread, with or without the GIL.
void note_copy(const c10::StorageImpl* source, Copied how, const Copy& copy) noexcept;
std::optional<Copy> find_copy(const c10::StorageImpl* source, Copied how) noexcept;

// In a fork child: a lock that another thread of the parent held is free again.
void reset_copies_after_fork() noexcept;

}  // namespace devsan::hooks
