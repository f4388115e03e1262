// The little that devsan asks of ELF files on disk. It runs inside the traced process as well: no memory from the heap,
// no exceptions. Anything that is no sound 64-bit ELF file answers with nothing.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "preload/mapped_file.h"

namespace devsan {

class ElfFile {
 public:
  explicit ElfFile(const char* path) noexcept;

  bool sound() const noexcept { return !segments_.empty(); }

  // Whether nothing is cut off its end: linkers put the table of sections there.
  bool whole() const noexcept;

  // Has no dynamic loader, so that nothing can be preloaded into it.
  bool is_static_program() const noexcept;

  // In lower-case hexadecimal digits; false where there is none.
  bool read_build_id(char* digits, std::size_t size) const noexcept;

  // The string table of the dynamic symbols.
  std::string_view symbol_names() const noexcept { return strings_; }

  // Whether others can bind to a symbol of that name. Found by the GNU hash table.
  bool exports(const char* name) const noexcept;

  // Calls visit(name) for each library that it is linked with, until one call returns true; whether one did.
  template <typename Visitor>
  bool any_needed(Visitor visit) const noexcept {
    for (const Elf64_Dyn& entry : dynamic_) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < strings_.size() && visit(&strings_[entry.d_un.d_val])) {
        return true;
      }
    }
    return false;
  }

  // The same for each symbol that some library has to define, and whose version does not say which one: those of the C
  // and C++ libraries have versions.
  template <typename Visitor>
  bool any_undefined_without_version(Visitor visit) const noexcept {
    for (std::size_t i = 1; i < unhashed_; ++i) {
      const Elf64_Sym* symbol = symbol_at(i);
      if (symbol == nullptr) return false;
      if (symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL || has_version(i)) continue;
      if (symbol->st_name < strings_.size() && visit(&strings_[symbol->st_name])) return true;
    }
    return false;
  }

 private:
  template <typename T>
  std::span<const T> at(std::uint64_t offset, std::uint64_t count) const noexcept {
    const std::size_t size = file_.text().size();
    if (offset > size || count > (size - offset) / sizeof(T) || offset % alignof(T) != 0) return {};
    return {reinterpret_cast<const T*>(file_.text().data() + offset), static_cast<std::size_t>(count)};
  }

  // As many as lie behind that address in the same segment.
  template <typename T>
  std::span<const T> at_address(std::uint64_t address) const noexcept;

  void read_dynamic() noexcept;
  void read_hash_table(std::uint64_t address) noexcept;
  const Elf64_Sym* symbol_at(std::size_t index) const noexcept;
  bool has_version(std::size_t index) const noexcept;

  MappedFile file_;
  const Elf64_Ehdr* header_ = nullptr;
  std::span<const Elf64_Phdr> segments_;
  std::span<const Elf64_Dyn> dynamic_;
  std::span<const Elf64_Sym> symbols_;
  std::span<const Elf64_Half> versions_;
  std::string_view strings_;  // ends with a null
  std::span<const std::uint64_t> filter_;
  std::span<const std::uint32_t> buckets_;
  std::span<const std::uint32_t> hashes_;  // of the symbols from `unhashed_` on
  std::uint32_t filter_shift_ = 0;
  std::size_t unhashed_ = 0;  // symbols at the front of the table: all that are not defined here
};

}  // namespace devsan
