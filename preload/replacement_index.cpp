#include "preload/replacement_index.h"

#include <bit>
#include <cstring>

namespace devsan {
namespace {

std::uint64_t mix(std::uint64_t value) noexcept {
  return (value * 0x9e3779b97f4a7c15u) >> 20;
}

std::uint64_t hash_of(const void* address) noexcept {
  return mix(reinterpret_cast<std::uintptr_t>(address) >> 4);
}

// FNV-1a.
std::uint64_t hash_of(const char* name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return mix(hash);
}

}  // namespace

bool ReplacementIndex::build(const HookTable& table, const ElfImage& hooks) noexcept {
  const std::size_t buckets = std::bit_ceil(std::size_t{table.count} * 2 + 2);
  if (table.count == 0 || !entries_memory_.allocate(table.count * sizeof(Entry)) ||
      !buckets_memory_.allocate(2 * buckets * sizeof(std::uint32_t))) {
    return false;
  }
  entries_ = entries_memory_.as<Entry>();
  address_buckets_ = buckets_memory_.as<std::uint32_t>();
  name_buckets_ = address_buckets_ + buckets;
  mask_ = buckets - 1;
  // Walked instead of the table: only a relocation knows the name, and which of several equal addresses was meant.
  const auto first = reinterpret_cast<std::uintptr_t>(table.replacements);
  const std::uintptr_t end = first + table.count * sizeof(Replacement);
  for (const ElfW(Rela) & relocation : hooks.other_relocations()) {
    const auto type = ELF64_R_TYPE(relocation.r_info);
    const std::uintptr_t slot = hooks.base() + relocation.r_offset;
    if ((type != R_X86_64_64 && type != R_X86_64_GLOB_DAT) || relocation.r_addend != 0 || slot < first || slot >= end ||
        (slot - first) % sizeof(Replacement) != offsetof(Replacement, real)) {
      continue;
    }
    const Replacement& replacement = table.replacements[(slot - first) / sizeof(Replacement)];
    if (replacement.wrapper == nullptr || count_ == table.count) continue;
    if (replacement.real == nullptr && (!replacement.by_name || name_only_count_ == kMaxNameOnly)) continue;
    entries_[count_] = {hooks.symbol_name(relocation), replacement.real, replacement.wrapper};
    if (replacement.in_tables && replacement.real != nullptr && in_tables_count_ < kMaxInTables) {
      in_tables_[in_tables_count_++] = static_cast<std::uint32_t>(count_);
    }
    if (replacement.on_demand && replacement.real != nullptr && on_demand_count_ < kMaxOnDemand) {
      on_demand_[on_demand_count_++] = static_cast<std::uint32_t>(count_);
    }
    insert(static_cast<std::uint32_t>(count_++));
  }
  find_common_prefix();
  return count_ != 0;
}

std::uint32_t* ReplacementIndex::bucket_of(std::uint32_t* buckets, std::uint64_t hash) const noexcept {
  return &buckets[hash & mask_];
}

void ReplacementIndex::insert(std::uint32_t entry) noexcept {
  const auto put = [&](std::uint32_t* buckets, std::uint64_t hash) {
    while (*bucket_of(buckets, hash) != 0) ++hash;
    *bucket_of(buckets, hash) = entry + 1;
  };
  if (entries_[entry].real != nullptr) {
    put(address_buckets_, hash_of(entries_[entry].real));
  } else {
    name_only_[name_only_count_++] = entry;
  }
  put(name_buckets_, hash_of(entries_[entry].name));
}

void ReplacementIndex::find_common_prefix() noexcept {
  if (count_ == 0) return;
  prefix_length_ = std::strlen(entries_[0].name);
  for (std::size_t i = 1; i < count_; ++i) {
    std::size_t same = 0;
    while (same < prefix_length_ && entries_[i].name[same] == entries_[0].name[same]) ++same;
    prefix_length_ = same;
  }
}

void* ReplacementIndex::by_name_alone(const char* name) const noexcept {
  for (std::size_t i = 0; i < name_only_count_; ++i) {
    const Entry& entry = entries_[name_only_[i]];
    if (std::strcmp(entry.name, name) == 0) return entry.wrapper;
  }
  return nullptr;
}

// Linkers may fold equal functions, so one address can stand for several names.
void* ReplacementIndex::by_address(const void* value, const char* name) const noexcept {
  for (std::uint64_t hash = hash_of(value);; ++hash) {
    const std::uint32_t bucket = *bucket_of(address_buckets_, hash);
    if (bucket == 0) return by_name_alone(name);
    const Entry& entry = entries_[bucket - 1];
    if (entry.real == value && std::strcmp(entry.name, name) == 0) return entry.wrapper;
  }
}

void* ReplacementIndex::in_tables(const void* value) const noexcept {
  for (std::size_t i = 0; i < in_tables_count_; ++i) {
    const Entry& entry = entries_[in_tables_[i]];
    if (entry.real == value) return entry.wrapper;
  }
  return nullptr;
}

bool ReplacementIndex::waits_in(const void* wrapper, std::uintptr_t begin, std::uintptr_t end) const noexcept {
  for (std::size_t i = 0; i < on_demand_count_; ++i) {
    const Entry& entry = entries_[on_demand_[i]];
    const auto real = reinterpret_cast<std::uintptr_t>(entry.real);
    if (entry.wrapper == wrapper && real >= begin && real < end) return true;
  }
  return false;
}

void* ReplacementIndex::by_name(const char* name, void** real) const noexcept {
  if (std::strncmp(name, entries_[0].name, prefix_length_) != 0) return nullptr;
  for (std::uint64_t hash = hash_of(name);; ++hash) {
    const std::uint32_t bucket = *bucket_of(name_buckets_, hash);
    if (bucket == 0) return nullptr;
    const Entry& entry = entries_[bucket - 1];
    if (std::strcmp(entry.name, name) != 0) continue;
    *real = entry.real;
    return entry.wrapper;
  }
}

}  // namespace devsan
