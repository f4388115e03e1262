#include "preload/hooks_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "devsan_version.h"

namespace devsan {
namespace {

constexpr std::size_t kMaxNoteBytes = 4096;

// A short lived descriptor. CLOEXEC, because another thread may start a program meanwhile.
class ReadOnlyFile {
 public:
  explicit ReadOnlyFile(const char* path) noexcept : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~ReadOnlyFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  bool read_at(std::uint64_t offset, void* out, std::size_t size) const noexcept {
    return descriptor_ >= 0 && pread(descriptor_, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  }

  ssize_t read_some(void* out, std::size_t size) const noexcept {
    return descriptor_ >= 0 ? read(descriptor_, out, size) : -1;
  }

 private:
  int descriptor_;
};

bool fits(int printed, std::size_t size) {
  return printed > 0 && static_cast<std::size_t>(printed) < size;
}

std::size_t padded(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

bool write_digits(const unsigned char* bytes, std::size_t count, char* digits, std::size_t size) noexcept {
  if (count == 0 || 2 * count + 1 > size) return false;
  for (std::size_t i = 0; i < count; ++i) {
    digits[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
    digits[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
  }
  digits[2 * count] = '\0';
  return true;
}

bool find_build_id_note(const unsigned char* notes, std::size_t bytes, char* digits, std::size_t size) noexcept {
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= bytes) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t value = name + padded(note.n_namesz);
    const std::size_t end = value + padded(note.n_descsz);
    if (value < name || end < value || value + note.n_descsz > bytes) return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      return write_digits(notes + value, note.n_descsz, digits, size);
    }
    at = end;
  }
  return false;
}

// The home directory by /etc/passwd. getpwuid could load name service libraries into the process, which the program
// that we are a guest in did not ask for.
bool home_from_passwd(char* home, std::size_t size) noexcept {
  char text[65536];
  const ssize_t bytes = ReadOnlyFile("/etc/passwd").read_some(text, sizeof text - 1);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  char wanted[24];
  std::snprintf(wanted, sizeof wanted, "%u", static_cast<unsigned>(geteuid()));
  char* rest = text;
  while (char* line = strsep(&rest, "\n")) {
    const char* fields[7] = {};
    std::size_t count = 0;
    while (count < 7 && line != nullptr) fields[count++] = strsep(&line, ":");
    if (count == 7 && std::strcmp(fields[2], wanted) == 0 && fields[5][0] == '/') {
      return fits(std::snprintf(home, size, "%s", fields[5]), size);
    }
  }
  return false;
}

}  // namespace

bool read_build_id(const char* elf_file, char* digits, std::size_t size) noexcept {
  const ReadOnlyFile file(elf_file);
  Elf64_Ehdr header;
  if (!file.read_at(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!file.read_at(header.e_phoff + i * sizeof segment, &segment, sizeof segment)) return false;
    if (segment.p_type != PT_NOTE) continue;
    unsigned char notes[kMaxNoteBytes];
    const std::size_t bytes = segment.p_filesz < sizeof notes ? segment.p_filesz : sizeof notes;
    if (file.read_at(segment.p_offset, notes, bytes) && find_build_id_note(notes, bytes, digits, size)) return true;
  }
  return false;
}

bool find_cache_root(char* root, std::size_t size) noexcept {
  // A relative path is no answer here: it would be another directory in every working directory.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fits(std::snprintf(root, size, "%s/devsan", cache), size);
  const char* home = std::getenv("HOME");
  char own_home[kCachePathSize];
  if (home == nullptr || home[0] != '/') {
    if (!home_from_passwd(own_home, sizeof own_home)) return false;
    home = own_home;
  }
  return fits(std::snprintf(root, size, "%s/.cache/devsan", home), size);
}

bool is_private_directory(const char* path) noexcept {
  struct stat status;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

HooksState locate_hooks(const char* libtorch_cpu, HooksLocation* location) noexcept {
  *location = HooksLocation{};
  char build_id[80];
  if (!read_build_id(libtorch_cpu, build_id, sizeof build_id)) return HooksState::no_build_id;
  if (!fits(std::snprintf(location->key, sizeof location->key, "%s-%s-%s", DEVSAN_VERSION, DEVSAN_SOURCE_ID, build_id),
            sizeof location->key)) {
    return HooksState::no_build_id;
  }
  if (!find_cache_root(location->root, sizeof location->root) ||
      !fits(std::snprintf(location->directory, sizeof location->directory, "%s/%s", location->root, location->key),
            sizeof location->directory)) {
    return HooksState::no_home;
  }
  struct stat status;
  if (lstat(location->root, &status) != 0) return HooksState::missing;
  if (!is_private_directory(location->root)) return HooksState::not_private;
  if (lstat(location->directory, &status) != 0) return HooksState::missing;
  if (!is_private_directory(location->directory)) return HooksState::not_private;
  char library[kCachePathSize + sizeof kHooksLibrary + 1];
  std::snprintf(library, sizeof library, "%s/%s", location->directory, kHooksLibrary);
  return access(library, R_OK) == 0 ? HooksState::ready : HooksState::missing;
}

}  // namespace devsan
