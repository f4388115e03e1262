#include "preload/cuda_ledger.h"

#include <sys/mman.h>

#include <algorithm>

namespace devsan::cuda {
namespace {

std::uint64_t mix(std::uint64_t key) noexcept {
  key = (key ^ key >> 33) * 0xFF51AFD7ED558CCDu;
  return key ^ key >> 33;
}

}  // namespace

bool Ledger::clear() noexcept {
  last_physical_.store(0, std::memory_order_relaxed);
  if (entries_ == nullptr) {
    if (!memory_.allocate(kEntries * sizeof(Entry))) return false;
    entries_ = memory_.as<Entry>();
    return true;
  }
  // Private pages come back as zeros.
  return madvise(entries_, kEntries * sizeof(Entry), MADV_DONTNEED) == 0;
}

// Addresses have 57 bits at most. Never one of the special keys: there the upper half is 0.
std::uint64_t Ledger::key_of(Role role, std::uint64_t value) noexcept {
  return value << 3 | static_cast<std::uint64_t>(role) << 1 | std::uint64_t{1} << 63;
}

// An entry that was removed keeps its place in the chain, so a free one ends it.
Ledger::Entry* Ledger::find(std::uint64_t key) noexcept {
  if (entries_ == nullptr) return nullptr;
  const std::uint64_t hash = mix(key);
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Entry& entry = entries_[(hash + probe) % kEntries];
    const std::uint64_t there = entry.key.load(std::memory_order_acquire);
    if (there == key) return &entry;
    if (there == kEmpty) return nullptr;
  }
  return nullptr;
}

Ledger::Entry* Ledger::insert(std::uint64_t key, const Block& block, std::uint64_t physical,
                              std::uint32_t holders) noexcept {
  if (entries_ == nullptr) return nullptr;
  const std::uint64_t hash = mix(key);
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Entry& entry = entries_[(hash + probe) % kEntries];
    std::uint64_t there = entry.key.load(std::memory_order_relaxed);
    if (there != kEmpty && there != kRemoved) continue;
    if (!entry.key.compare_exchange_strong(there, kBeingFilled, std::memory_order_acq_rel)) continue;
    entry.bytes = block.bytes;
    entry.physical = physical;
    entry.holders.store(holders, std::memory_order_relaxed);
    entry.device = static_cast<std::int16_t>(block.device);
    entry.space = block.space;
    entry.key.store(key, std::memory_order_release);
    return &entry;
  }
  return nullptr;
}

bool Ledger::add(std::uint64_t address, const Block& block) noexcept {
  return insert(key_of(Role::memory, address), block, 0, 1) != nullptr;
}

std::optional<Block> Ledger::take(std::uint64_t address) noexcept {
  std::uint64_t key = key_of(Role::memory, address);
  Entry* const entry = find(key);
  if (entry == nullptr) return std::nullopt;
  const Block block{entry->bytes, entry->device, entry->space};
  // A program that frees twice at once has one of the two refused.
  if (!entry->key.compare_exchange_strong(key, kRemoved, std::memory_order_acq_rel)) return std::nullopt;
  return block;
}

bool Ledger::add_physical(std::uint64_t handle, const Block& block) noexcept {
  const std::uint64_t number = last_physical_.fetch_add(1, std::memory_order_relaxed) + 1;
  Entry* const physical = insert(key_of(Role::physical, number), block, 0, 1);
  if (physical == nullptr) return false;
  if (insert(key_of(Role::handle, handle), {}, number, 1) != nullptr) return true;
  physical->key.store(kRemoved, std::memory_order_release);
  return false;
}

void Ledger::retain(std::uint64_t handle) noexcept {
  Entry* const entry = find(key_of(Role::handle, handle));
  if (entry != nullptr) entry->holders.fetch_add(1, std::memory_order_relaxed);
}

int Ledger::device_of(std::uint64_t handle) noexcept {
  Entry* const entry = find(key_of(Role::handle, handle));
  Entry* const physical = entry != nullptr ? find(key_of(Role::physical, entry->physical)) : nullptr;
  return physical != nullptr ? physical->device : -1;
}

std::optional<Block> Ledger::release(std::uint64_t handle) noexcept {
  Entry* const entry = find(key_of(Role::handle, handle));
  if (entry == nullptr) return std::nullopt;
  const std::uint64_t physical = entry->physical;
  if (entry->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return std::nullopt;
  entry->key.store(kRemoved, std::memory_order_release);
  return let_go(physical);
}

std::optional<Block> Ledger::let_go(std::uint64_t number) noexcept {
  Entry* const physical = find(key_of(Role::physical, number));
  if (physical == nullptr) return std::nullopt;
  const Block block{physical->bytes, physical->device, physical->space};
  if (physical->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return std::nullopt;
  physical->key.store(kRemoved, std::memory_order_release);
  return block;
}

void Ledger::map(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle) noexcept {
  Entry* const entry = find(key_of(Role::handle, handle));
  const std::uint64_t number = entry != nullptr ? entry->physical : 0;
  Entry* const physical = number != 0 ? find(key_of(Role::physical, number)) : nullptr;
  if (physical != nullptr) physical->holders.fetch_add(1, std::memory_order_relaxed);
  if (insert(key_of(Role::mapping, address), {bytes, -1, {}}, number, 1) == nullptr && physical != nullptr) {
    physical->holders.fetch_sub(1, std::memory_order_relaxed);
  }
}

std::uint64_t Ledger::unmap(std::uint64_t address, std::optional<Block>* ended) noexcept {
  Entry* const entry = find(key_of(Role::mapping, address));
  if (entry == nullptr) return 0;
  const std::uint64_t bytes = entry->bytes;
  const std::uint64_t physical = entry->physical;
  entry->key.store(kRemoved, std::memory_order_release);
  *ended = physical != 0 ? let_go(physical) : std::nullopt;
  return bytes;
}

}  // namespace devsan::cuda
