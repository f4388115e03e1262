#include "launch/elf_file.h"

#include <algorithm>
#include <cstring>

namespace devsan::launch {

namespace {

constexpr std::uint64_t kMaxDynamicBytes = 1 << 20;

}  // namespace

ElfFile::ElfFile(const std::filesystem::path& path) : file_(path, std::ios::binary) {
  Elf64_Ehdr header;
  if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return;
  }
  segments_.resize(header.e_phnum);
  if (!read(header.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr))) segments_.clear();
  type_ = header.e_type;
}

std::vector<Elf64_Dyn> ElfFile::dynamic_entries() {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_DYNAMIC || segment.p_filesz > kMaxDynamicBytes) continue;
    std::vector<Elf64_Dyn> entries(segment.p_filesz / sizeof(Elf64_Dyn));
    if (read(segment.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return entries;
  }
  return {};
}

std::vector<std::string> ElfFile::needed_libraries() {
  std::vector<std::string> needed;
  const std::string names = symbol_names();
  for (const Elf64_Dyn& entry : dynamic_entries()) {
    if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < names.size()) needed.emplace_back(&names[entry.d_un.d_val]);
  }
  return needed;
}

std::string ElfFile::symbol_names() {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  for (const Elf64_Dyn& entry : dynamic_entries()) {
    if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
  }
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr || size > segment.p_filesz) continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside > segment.p_filesz - size) continue;
    std::string text(size, '\0');
    return read(segment.p_offset + inside, text.data(), text.size()) ? text : std::string();
  }
  return {};
}

bool ElfFile::is_static_program() const {
  const bool loaded = std::any_of(segments_.begin(), segments_.end(),
                                  [](const Elf64_Phdr& segment) { return segment.p_type == PT_INTERP; });
  return (type_ == ET_EXEC || type_ == ET_DYN) && !segments_.empty() && !loaded;
}

bool ElfFile::read(std::uint64_t offset, void* out, std::size_t size) {
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file_.read(static_cast<char*>(out), static_cast<std::streamsize>(size)));
}

}  // namespace devsan::launch
