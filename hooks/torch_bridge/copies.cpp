#include "hooks/inprocess/bridge/copies.h"

#include <array>
#include <atomic>

#include "hooks/inprocess/common/address_slot.h"
#include "hooks/inprocess/common/spin_guard.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/torch_bridge/storage_release.h"

namespace devsan::hooks {

namespace {

struct CopyEntry {
  const void* source = nullptr;
  Copy copy;
};

constexpr std::size_t kCopyEntries = 1 << 12;
constexpr std::size_t kTables = 3;  // by Copied
constinit std::array<std::array<CopyEntry, kTables>, kCopyEntries> copy_entries{};
constinit std::atomic_flag lock = ATOMIC_FLAG_INIT;

std::array<CopyEntry, kTables>& entries_of(const void* source) noexcept {
  return copy_entries[slot_of_address<kCopyEntries>(source)];
}

}  // namespace

void note_copy(const c10::StorageImpl* source, Copied how, const Copy& copy) noexcept {
  if (copy.site == trace::SiteId::none || !tells_when_it_dies(source)) return;
  const SpinGuard guard(lock);
  if (!guard.held()) return;
  auto& all = entries_of(source);
  if (!origin_table().copied(source)) {  // what is written of this address is of a storage that has died
    for (CopyEntry& entry : all) {
      if (entry.source == source) entry = {};
    }
  }
  all[static_cast<std::size_t>(how)] = {source, copy};
  origin_table().mark_copied(source);
}

std::optional<Copy> find_copy(const c10::StorageImpl* source, Copied how) noexcept {
  const SpinGuard guard(lock);
  const CopyEntry& entry = entries_of(source)[static_cast<std::size_t>(how)];
  if (!guard.held() || !origin_table().copied(source) || entry.source != source) return std::nullopt;
  return entry.copy;
}

void reset_copies_after_fork() noexcept {
  lock.clear();
}

}  // namespace devsan::hooks
