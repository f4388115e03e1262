// An object as the dynamic loader mapped it, read straight from memory: its symbols, found by the hash table that the
// loader uses, and its relocations. Takes no lock, no memory and no system call, and works before any constructor ran.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#ifndef __GLIBC__
#error "devsan needs glibc: other C libraries lay out and search their objects in another way"
#endif

namespace devsan {

// Whether an object is mapped there.
bool holds(const dl_phdr_info& object, const void* address) noexcept;

class ElfImage {
 public:
  // `base` is what the loader added to the addresses in the file (l_addr, dlpi_addr).
  ElfImage(ElfW(Addr) base, const ElfW(Dyn) * dynamic) noexcept;
  // An object without a dynamic section gives an image in which nothing is found.
  explicit ElfImage(const dl_phdr_info& info) noexcept;

  // What dlsym(handle, name) finds in this object alone: a defined function or variable, global or weak, in its default
  // version. Null where there is none.
  const ElfW(Sym) * find_symbol(const char* name) const noexcept;
  // The same as an address; a function that chooses its implementation at load time (IFUNC) is asked for it.
  void* find_address(const char* name) const noexcept;

  // DT_JMPREL, and DT_RELA from the first entry on that may name a symbol. Empty where the object has none.
  std::span<const ElfW(Rela)> plt_relocations() const noexcept { return plt_relocations_; }
  std::span<const ElfW(Rela)> other_relocations() const noexcept { return other_relocations_; }

  ElfW(Addr) base() const noexcept { return base_; }
  const ElfW(Dyn) * dynamic() const noexcept { return dynamic_; }
  const ElfW(Sym) & symbol(const ElfW(Rela) & relocation) const noexcept {
    return symbols_[ELF64_R_SYM(relocation.r_info)];
  }
  const char* symbol_name(const ElfW(Rela) & relocation) const noexcept {
    return strings_ + symbol(relocation).st_name;
  }
  void** slot(const ElfW(Rela) & relocation) const noexcept {
    return reinterpret_cast<void**>(base_ + relocation.r_offset);
  }
  // Whether `wanted` is true of the name of an object that this one is linked with.
  template <typename Predicate>
  bool any_needed(Predicate wanted) const noexcept {
    if (strings_ == nullptr) return false;
    for (const ElfW(Dyn)* entry = dynamic_; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_NEEDED && wanted(std::string_view(strings_ + entry->d_un.d_val))) return true;
    }
    return false;
  }

 private:
  void read_dynamic() noexcept;
  ElfW(Addr) address(ElfW(Addr) pointer) const noexcept;
  bool matches(std::uint32_t index, const char* name) const noexcept;
  const ElfW(Sym) * find_by_gnu_hash(const char* name) const noexcept;
  const ElfW(Sym) * find_by_sysv_hash(const char* name) const noexcept;

  ElfW(Addr) base_ = 0;
  const ElfW(Dyn) * dynamic_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* gnu_hash_ = nullptr;
  const std::uint32_t* sysv_hash_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  std::span<const ElfW(Rela)> plt_relocations_;
  std::span<const ElfW(Rela)> other_relocations_;
};

}  // namespace devsan
