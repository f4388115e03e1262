#include "hooks/inprocess/common/nearest_symbol.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>

namespace devsan::hooks {

namespace {

// struct dl_find_object of glibc 2.35; here for builds on an older one.
struct FoundObject {
  unsigned long long flags;
  void* begin;
  void* end;
  link_map* object;
  void* unwinding;
  unsigned long long reserved[7];
};

using FindObject = int (*)(void* address, FoundObject* found);
FindObject find_object = nullptr;

struct SymbolTable {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
};

SymbolTable symbol_table(const link_map& object) noexcept {
  SymbolTable table;
  const auto pointer = [&](const ElfW(Dyn) & entry) {
    // The loader adds the base to most of them; the vDSO's are left as they are in the file.
    const ElfW(Addr) at = entry.d_un.d_ptr;
    return at < object.l_addr ? object.l_addr + at : at;
  };
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) table.symbols = reinterpret_cast<const ElfW(Sym)*>(pointer(*entry));
    if (entry->d_tag == DT_STRTAB) table.strings = reinterpret_cast<const char*>(pointer(*entry));
    if (entry->d_tag == DT_GNU_HASH) table.gnu_hash = reinterpret_cast<const std::uint32_t*>(pointer(*entry));
  }
  return table;
}

// The hash table says how many symbols there are: the last one of its longest chain is the last of all.
std::uint32_t symbol_count(const std::uint32_t* gnu_hash) noexcept {
  const std::uint32_t buckets = gnu_hash[0], first = gnu_hash[1], bloom_words = gnu_hash[2];
  const std::uint32_t* bucket = gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t k = 0; k < buckets; ++k) last = std::max(last, bucket[k]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

}  // namespace

void prepare_native_places() noexcept {
  find_object = reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
}

NativePlace native_place(const void* address) noexcept {
  NativePlace place;
  FoundObject found{};
  if (find_object == nullptr || address == nullptr || find_object(const_cast<void*>(address), &found) != 0)
    return place;
  const link_map& object = *found.object;
  place.module = object.l_name != nullptr ? object.l_name : "";
  place.offset = reinterpret_cast<std::uintptr_t>(address) - object.l_addr;
  const SymbolTable table = symbol_table(object);
  if (table.symbols == nullptr || table.strings == nullptr || table.gnu_hash == nullptr) return place;
  const std::uint64_t offset = place.offset;
  const std::uint32_t count = symbol_count(table.gnu_hash);
  for (std::uint32_t k = 0; k < count; ++k) {
    const ElfW(Sym)& symbol = table.symbols[k];
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
    if (offset - symbol.st_value >= symbol.st_size) continue;
    place.symbol = table.strings + symbol.st_name;
    place.offset = offset - symbol.st_value;
    break;
  }
  return place;
}

}  // namespace devsan::hooks
