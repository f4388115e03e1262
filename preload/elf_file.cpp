#include "preload/elf_file.h"

#include <algorithm>
#include <cstring>

#include "preload/elf_hash.h"
#include "trace/fixed_text.h"

namespace devsan {
namespace {

constexpr Elf64_Half kVersionIndex = 0x7fff;  // without the bit that says "not the default version"
constexpr Elf64_Half kFirstNamedVersion = 2;  // 0 is local to the object, 1 its base version
constexpr std::uint64_t kMaxNoteBytes = 1 << 16;

std::size_t padded(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

bool write_digits(std::string_view bytes, char* digits, std::size_t size) noexcept {
  if (bytes.empty() || 2 * bytes.size() + 1 > size) return false;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    *digits++ = "0123456789abcdef"[value >> 4];
    *digits++ = "0123456789abcdef"[value & 15];
  }
  *digits = '\0';
  return true;
}

// The value of the build-id's note; empty where these notes have none.
std::string_view find_build_id(std::string_view notes) noexcept {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t value = sizeof note + padded(note.n_namesz);
    const std::size_t end = value + padded(note.n_descsz);
    if (value + note.n_descsz > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(sizeof note, note.n_namesz) == std::string_view("GNU", 4)) {
      return notes.substr(value, note.n_descsz);
    }
    notes.remove_prefix(std::min(end, notes.size()));
  }
  return {};
}

}  // namespace

ElfFile::ElfFile(const char* path) noexcept : file_(path) {
  const std::span<const Elf64_Ehdr> header = at<Elf64_Ehdr>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_phentsize != sizeof(Elf64_Phdr)) {
    return;
  }
  header_ = header.data();
  segments_ = at<Elf64_Phdr>(header_->e_phoff, header_->e_phnum);
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_DYNAMIC) dynamic_ = at<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn));
  }
  read_dynamic();
}

bool ElfFile::whole() const noexcept {
  if (!sound()) return false;
  const std::size_t size = file_.text().size();
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset) return false;
  }
  const std::uint64_t sections = std::uint64_t{header_->e_shnum} * header_->e_shentsize;
  return header_->e_shoff <= size && sections <= size - header_->e_shoff;
}

bool ElfFile::is_static_program() const noexcept {
  const bool loaded = std::any_of(segments_.begin(), segments_.end(),
                                  [](const Elf64_Phdr& segment) { return segment.p_type == PT_INTERP; });
  return sound() && (header_->e_type == ET_EXEC || header_->e_type == ET_DYN) && !loaded;
}

bool ElfFile::read_build_id(char* digits, std::size_t size) const noexcept {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_NOTE) continue;
    const std::span<const char> notes = at<char>(segment.p_offset, std::min(segment.p_filesz, kMaxNoteBytes));
    const std::string_view id = find_build_id({notes.data(), notes.size()});
    if (!id.empty()) return write_digits(id, digits, size);
  }
  return false;
}

template <typename T>
std::span<const T> ElfFile::at_address(std::uint64_t address) const noexcept {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside < segment.p_filesz) return at<T>(segment.p_offset + inside, (segment.p_filesz - inside) / sizeof(T));
  }
  return {};
}

void ElfFile::read_dynamic() noexcept {
  std::uint64_t strings = 0;
  std::uint64_t strings_size = 0;
  std::uint64_t hash_table = 0;
  for (const Elf64_Dyn& entry : dynamic_) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) strings_size = entry.d_un.d_val;
    if (entry.d_tag == DT_SYMTAB) symbols_ = at_address<Elf64_Sym>(entry.d_un.d_ptr);
    if (entry.d_tag == DT_VERSYM) versions_ = at_address<Elf64_Half>(entry.d_un.d_ptr);
    if (entry.d_tag == DT_GNU_HASH) hash_table = entry.d_un.d_ptr;
  }
  const std::span<const char> text = at_address<char>(strings);
  if (strings_size != 0 && strings_size <= text.size() && text[strings_size - 1] == '\0') {
    strings_ = {text.data(), static_cast<std::size_t>(strings_size)};
  }
  if (hash_table != 0) read_hash_table(hash_table);
}

// Header: buckets, index of the first hashed symbol, words of the Bloom filter, its second shift. Then the filter, the
// buckets, and one hash per symbol whose lowest bit ends a bucket.
void ElfFile::read_hash_table(std::uint64_t address) noexcept {
  constexpr std::size_t kHeader = 4;
  const std::span<const std::uint32_t> table = at_address<std::uint32_t>(address);
  if (table.size() < kHeader) return;
  const std::uint64_t buckets = table[0];
  const std::uint64_t filter_words = table[2];
  const std::uint64_t before_hashes = kHeader + 2 * filter_words + buckets;
  if (buckets == 0 || filter_words == 0 || before_hashes > table.size()) return;
  const std::span<const std::uint64_t> filter = at_address<std::uint64_t>(address + kHeader * sizeof table[0]);
  if (filter.size() < filter_words) return;
  unhashed_ = table[1];
  filter_shift_ = table[3] % 64;
  filter_ = filter.first(static_cast<std::size_t>(filter_words));
  buckets_ = table.subspan(static_cast<std::size_t>(before_hashes - buckets), static_cast<std::size_t>(buckets));
  hashes_ = table.subspan(static_cast<std::size_t>(before_hashes));
}

const Elf64_Sym* ElfFile::symbol_at(std::size_t index) const noexcept {
  return index < symbols_.size() ? &symbols_[index] : nullptr;
}

bool ElfFile::has_version(std::size_t index) const noexcept {
  return index < versions_.size() && (versions_[index] & kVersionIndex) >= kFirstNamedVersion;
}

bool ElfFile::exports(const char* name) const noexcept {
  if (filter_.empty()) return false;
  const std::uint32_t hash = gnu_hash_of(name);
  const std::uint64_t word = filter_[hash / 64 % filter_.size()];
  if ((word >> (hash % 64) & word >> ((hash >> filter_shift_) % 64) & 1) == 0) return false;
  std::size_t index = buckets_[hash % buckets_.size()];
  if (index < unhashed_) return false;
  for (; index - unhashed_ < hashes_.size(); ++index) {
    const std::uint32_t other = hashes_[index - unhashed_];
    const Elf64_Sym* symbol = symbol_at(index);
    if (symbol == nullptr) return false;
    if ((other | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
        symbol->st_name < strings_.size() && same_text(&strings_[symbol->st_name], name)) {
      return true;
    }
    if ((other & 1) != 0) return false;
  }
  return false;
}

}  // namespace devsan
