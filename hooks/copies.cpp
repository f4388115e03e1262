#include "hooks/copies.h"

#include <array>
#include <atomic>

#include "hooks/origin_table.h"
#include "hooks/spin_guard.h"
#include "hooks/storage_release.h"

namespace devsan::hooks {

namespace {

struct Entry {
  const void* source = nullptr;
  Copy copy;
};

constexpr std::size_t kEntries = 1 << 12;
constinit std::array<Entry, kEntries> entries{};
constinit std::atomic_flag lock = ATOMIC_FLAG_INIT;

Entry& entry_of(const void* source) noexcept {
  return entries[(reinterpret_cast<std::uintptr_t>(source) >> 4) * 0x9E3779B97F4A7C15u >> 52];
}
static_assert(kEntries == 1 << 12, "entry_of takes 12 bits");

}  // namespace

void note_copy(const c10::StorageImpl* source, const Copy& copy) noexcept {
  if (copy.site == trace::SiteId::none || !tells_when_it_dies(source)) return;
  const SpinGuard guard(lock);
  if (!guard.held()) return;
  entry_of(source) = {source, copy};
  origin_table.mark_copied(source);
}

std::optional<Copy> find_copy(const c10::StorageImpl* source) noexcept {
  const SpinGuard guard(lock);
  if (!guard.held() || !origin_table.copied(source) || entry_of(source).source != source) return std::nullopt;
  return entry_of(source).copy;
}

void reset_copies_after_fork() noexcept {
  lock.clear();
}

}  // namespace devsan::hooks
