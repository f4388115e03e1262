#include "preload/hooks_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "devsan_version.h"
#include "preload/elf_file.h"
#include "preload/mapped_file.h"

namespace devsan {
namespace {

bool fits(int printed, std::size_t size) {
  return printed > 0 && static_cast<std::size_t>(printed) < size;
}

// The home directory by /etc/passwd. getpwuid could load name service libraries into the process, which the program
// that we are a guest in did not ask for.
bool home_from_passwd(char* home, std::size_t size) noexcept {
  const MappedFile file("/etc/passwd");
  std::string_view text = file.text();
  FixedText<24> wanted;
  wanted.append_number(geteuid());
  while (!text.empty()) {
    std::string_view line = take_line(&text);
    std::string_view fields[6];
    for (std::string_view& field : fields) {
      const std::size_t end = std::min(line.find(':'), line.size());
      field = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    if (fields[2] == wanted.view() && fields[5].starts_with('/')) {
      return fits(std::snprintf(home, size, "%.*s", static_cast<int>(fields[5].size()), fields[5].data()), size);
    }
  }
  return false;
}

}  // namespace

const char kHooksSources[] = DEVSAN_VERSION " " DEVSAN_SOURCE_ID;

bool read_build_id(const char* elf_file, char* digits, std::size_t size) noexcept {
  return ElfFile(elf_file).read_build_id(digits, size);
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

bool find_temporary_root(char* root, std::size_t size) noexcept {
  const char* temporary = std::getenv("TMPDIR");
  if (temporary == nullptr || temporary[0] != '/') temporary = "/tmp";
  return fits(std::snprintf(root, size, "%s/devsan-%u", temporary, static_cast<unsigned>(geteuid())), size);
}

bool is_private_directory(const char* path) noexcept {
  struct stat status;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool make_cache_key(const char* libtorch_cpu, HooksLocation* location) noexcept {
  char build_id[80];
  return read_build_id(libtorch_cpu, build_id, sizeof build_id) &&
         fits(
             std::snprintf(location->key, sizeof location->key, "%s-%s-%s", DEVSAN_VERSION, DEVSAN_SOURCE_ID, build_id),
             sizeof location->key);
}

HooksState look_in_cache(const char* root, HooksLocation* location) noexcept {
  if (!fits(std::snprintf(location->root, sizeof location->root, "%s", root), sizeof location->root) ||
      !fits(std::snprintf(location->directory, sizeof location->directory, "%s/%s", root, location->key),
            sizeof location->directory)) {
    return HooksState::no_home;
  }
  struct stat status;
  if (lstat(root, &status) != 0) return HooksState::missing;
  if (!is_private_directory(root)) return HooksState::not_private;
  if (lstat(location->directory, &status) != 0) return HooksState::missing;
  if (!is_private_directory(location->directory)) return HooksState::not_private;
  return access(path_in(location->directory, kHooksLibrary).c_str(), R_OK) == 0 ? HooksState::ready
                                                                                : HooksState::missing;
}

HooksState locate_hooks(const char* libtorch_cpu, HooksLocation* location) noexcept {
  *location = HooksLocation{};
  if (!make_cache_key(libtorch_cpu, location)) return HooksState::no_build_id;
  char own[kCachePathSize];
  char temporary[kCachePathSize];
  const bool has_own = find_cache_root(own, sizeof own);
  const HooksState state = has_own ? look_in_cache(own, location) : HooksState::no_home;
  if (state == HooksState::ready || !find_temporary_root(temporary, sizeof temporary)) return state;
  if (look_in_cache(temporary, location) == HooksState::ready) return HooksState::ready;
  if (has_own) {
    look_in_cache(own, location);
  } else {
    location->root[0] = location->directory[0] = '\0';
  }
  return state;
}

}  // namespace devsan
