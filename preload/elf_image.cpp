#include "preload/elf_image.h"

#include "preload/elf_hash.h"
#include "trace/fixed_text.h"

namespace devsan {
namespace {

constexpr ElfW(Half) kHiddenVersion = 0x8000;  // in DT_VERSYM: not the default version of its symbol
constexpr ElfW(Half) kFirstNamedVersion = 2;   // 0 is local to the object, 1 its base version

std::uint32_t sysv_hash_of(const char* name) noexcept {
  std::uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const std::uint32_t high = hash & 0xf0000000;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

const ElfW(Dyn) * dynamic_of(const dl_phdr_info& info) noexcept {
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  return nullptr;
}

}  // namespace

bool holds(const dl_phdr_info& object, const void* address) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && wanted >= begin && wanted - begin < segment.p_memsz) return true;
  }
  return false;
}

ElfImage::ElfImage(ElfW(Addr) base, const ElfW(Dyn) * dynamic) noexcept : base_(base), dynamic_(dynamic) {
  if (dynamic_ != nullptr) read_dynamic();
}

ElfImage::ElfImage(const dl_phdr_info& info) noexcept : ElfImage(info.dlpi_addr, dynamic_of(info)) {}

// glibc adds the base to the pointers in the dynamic section in place, but not in the kernel's own object (vDSO).
ElfW(Addr) ElfImage::address(ElfW(Addr) pointer) const noexcept {
  return pointer < base_ ? base_ + pointer : pointer;
}

void ElfImage::read_dynamic() noexcept {
  const ElfW(Rela)* plt = nullptr;
  const ElfW(Rela)* other = nullptr;
  std::size_t plt_bytes = 0;
  std::size_t other_bytes = 0;
  std::size_t relative = 0;
  bool plt_has_addends = true;
  for (const ElfW(Dyn)* entry = dynamic_; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) pointer = address(entry->d_un.d_ptr);
    const std::size_t value = entry->d_un.d_val;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(pointer);
        break;
      case DT_STRTAB:
        strings_ = reinterpret_cast<const char*>(pointer);
        break;
      case DT_GNU_HASH:
        gnu_hash_ = reinterpret_cast<const std::uint32_t*>(pointer);
        break;
      case DT_HASH:
        sysv_hash_ = reinterpret_cast<const std::uint32_t*>(pointer);
        break;
      case DT_VERSYM:
        versions_ = reinterpret_cast<const ElfW(Half)*>(pointer);
        break;
      case DT_JMPREL:
        plt = reinterpret_cast<const ElfW(Rela)*>(pointer);
        break;
      case DT_PLTRELSZ:
        plt_bytes = value;
        break;
      case DT_PLTREL:
        plt_has_addends = value == DT_RELA;
        break;
      case DT_RELA:
        other = reinterpret_cast<const ElfW(Rela)*>(pointer);
        break;
      case DT_RELASZ:
        other_bytes = value;
        break;
      case DT_RELACOUNT:
        relative = value;
        break;
      default:
        break;
    }
  }
  if (symbols_ == nullptr || strings_ == nullptr) return;
  if (plt != nullptr && plt_has_addends) plt_relocations_ = {plt, plt_bytes / sizeof *plt};
  if (other != nullptr && other_bytes / sizeof *other >= relative) {
    other_relocations_ = std::span(other, other_bytes / sizeof *other).subspan(relative);
  }
}

// The rule of dlsym without a version: a symbol of a named version counts in its default version only.
bool ElfImage::matches(std::uint32_t index, const char* name) const noexcept {
  const ElfW(Sym)& symbol = symbols_[index];
  if (symbol.st_shndx == SHN_UNDEF) return false;
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) return false;
  if (versions_ != nullptr && (versions_[index] & ~kHiddenVersion) >= kFirstNamedVersion &&
      (versions_[index] & kHiddenVersion) != 0) {
    return false;
  }
  return same_text(strings_ + symbol.st_name, name);
}

const ElfW(Sym) * ElfImage::find_by_gnu_hash(const char* name) const noexcept {
  // Header: buckets, index of the first hashed symbol, words of the Bloom filter, its second shift. Then the filter,
  // the buckets, and one hash per symbol whose lowest bit ends a bucket.
  const std::uint32_t bucket_count = gnu_hash_[0];
  const std::uint32_t first = gnu_hash_[1];
  const std::uint32_t filter_words = gnu_hash_[2];
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4);
  const auto* buckets = reinterpret_cast<const std::uint32_t*>(filter + filter_words);
  const std::uint32_t* hashes = buckets + bucket_count;
  if (bucket_count == 0 || filter_words == 0) return nullptr;

  const std::uint32_t hash = gnu_hash_of(name);
  constexpr unsigned kBits = 8 * sizeof(ElfW(Addr));
  const ElfW(Addr) word = filter[(hash / kBits) & (filter_words - 1)];
  if ((word >> (hash % kBits) & word >> ((hash >> gnu_hash_[3]) % kBits) & 1) == 0) return nullptr;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first) return nullptr;
  for (;; ++index) {
    const std::uint32_t other = hashes[index - first];
    if ((other | 1) == (hash | 1) && matches(index, name)) return &symbols_[index];
    if ((other & 1) != 0) return nullptr;
  }
}

const ElfW(Sym) * ElfImage::find_by_sysv_hash(const char* name) const noexcept {
  const std::uint32_t bucket_count = sysv_hash_[0];
  const std::uint32_t* buckets = sysv_hash_ + 2;
  const std::uint32_t* chain = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  for (std::uint32_t index = buckets[sysv_hash_of(name) % bucket_count]; index != STN_UNDEF; index = chain[index]) {
    if (matches(index, name)) return &symbols_[index];
  }
  return nullptr;
}

const ElfW(Sym) * ElfImage::find_symbol(const char* name) const noexcept {
  if (symbols_ == nullptr || strings_ == nullptr) return nullptr;
  if (gnu_hash_ != nullptr) return find_by_gnu_hash(name);
  return sysv_hash_ != nullptr ? find_by_sysv_hash(name) : nullptr;
}

void* ElfImage::find_address(const char* name) const noexcept {
  const ElfW(Sym)* symbol = find_symbol(name);
  if (symbol == nullptr) return nullptr;
  void* address = reinterpret_cast<void*>((symbol->st_shndx == SHN_ABS ? 0 : base_) + symbol->st_value);
  if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) return reinterpret_cast<void* (*)()>(address)();
  return address;
}

}  // namespace devsan
