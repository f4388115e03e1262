// Names and addresses of the functions that are replaced, found by either. Built once, read under the patcher's turn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/elf_image.h"
#include "preload/hooks_abi.h"
#include "preload/page_memory.h"

namespace devsan {

class ReplacementIndex {
 public:
  // `hooks` is the object whose relocations filled `table`. False without memory, or when no entry has a name.
  bool build(const HookTable& table, const ElfImage& hooks) noexcept;

  // The wrapper for a slot that holds `value` and names `name`; null when it is another function.
  void* by_address(const void* value, const char* name) const noexcept;
  // The wrapper and the real function for a slot that is not bound yet.
  void* by_name(const char* name, void** real) const noexcept;
  // The wrapper for a function whose address is stored as a value; null when the value is to stay.
  void* in_tables(const void* value) const noexcept;
  // Whether the wrapper waits for a demand in the object that lies at these addresses.
  bool waits_in(const void* wrapper, std::uintptr_t begin, std::uintptr_t end) const noexcept;
  std::size_t size() const noexcept { return count_; }

 private:
  struct Entry {
    const char* name;
    void* real;
    void* wrapper;
  };

  std::uint32_t* bucket_of(std::uint32_t* buckets, std::uint64_t hash) const noexcept;
  void insert(std::uint32_t entry) noexcept;
  void find_common_prefix() noexcept;
  void* by_name_alone(const char* name) const noexcept;

  static constexpr std::size_t kMaxNameOnly = 8;
  static constexpr std::size_t kMaxInTables = 8;
  static constexpr std::size_t kMaxOnDemand = 1024;

  PageMemory entries_memory_;
  PageMemory buckets_memory_;
  Entry* entries_ = nullptr;
  std::uint32_t* address_buckets_ = nullptr;  // entry + 1, linear probing
  std::uint32_t* name_buckets_ = nullptr;
  std::size_t mask_ = 0;
  std::size_t count_ = 0;
  std::uint32_t name_only_[kMaxNameOnly] = {};  // entries without an address
  std::size_t name_only_count_ = 0;
  std::uint32_t in_tables_[kMaxInTables] = {};  // entries that tables hold too
  std::size_t in_tables_count_ = 0;
  std::uint32_t on_demand_[kMaxOnDemand] = {};  // entries that wait for a demand
  std::size_t on_demand_count_ = 0;
  std::size_t prefix_length_ = 0;  // of all names: "_ZN2at4_ops"
};

}  // namespace devsan
