#include "trace/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace devsan::trace {
namespace {

// So many processes of one pid in one directory would be a loop of execs, not a run.
constexpr int kMaxSuffix = 9999;

bool is_directory(const char* path) noexcept {
  struct stat status {};
  if (stat(path, &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) return true;
  errno = ENOTDIR;
  return false;
}

bool write_name(const char* directory, std::int32_t rank, std::uint32_t pid, int suffix, PathBuffer& path) noexcept {
  char rank_text[16] = "-";
  char suffix_text[16] = "";
  if (rank >= 0) std::snprintf(rank_text, sizeof(rank_text), "%d", rank);
  if (suffix > 0) std::snprintf(suffix_text, sizeof(suffix_text), "-%d", suffix);
  const int length =
      std::snprintf(path, sizeof(PathBuffer), "%s/rank%s.%u%s.devsan", directory, rank_text, pid, suffix_text);
  if (length > 0 && static_cast<std::size_t>(length) < sizeof(PathBuffer)) return true;
  errno = ENAMETOOLONG;
  return false;
}

// O_EXCL also refuses a symbolic link that waits at the name, wherever it points.
int create_file(const char* directory, std::int32_t rank, std::uint32_t pid, PathBuffer& path) noexcept {
  for (int suffix = 0; suffix <= kMaxSuffix; ++suffix) {
    if (!write_name(directory, rank, pid, suffix, path)) return -1;
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// Returns 0 or an error number. Past RLIMIT_FSIZE the kernel would send SIGXFSZ, which ends a program by default.
int reserve(int fd, std::size_t size) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur) return EFBIG;
  int error = EINTR;
  for (int attempt = 0; attempt < 8 && error == EINTR; ++attempt) {
    error = posix_fallocate(fd, 0, static_cast<off_t>(size));
  }
  return error;
}

OpenResult blame(int error) noexcept {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return full ? OpenResult::no_space : OpenResult::cannot_create_file;
}

}  // namespace

bool make_absolute(const char* path, PathBuffer& absolute) noexcept {
  std::size_t length = 0;
  if (path[0] != '/') {
    if (getcwd(absolute, sizeof(absolute)) == nullptr) return false;
    length = std::strlen(absolute);
    if (length + 1 < sizeof(absolute)) absolute[length++] = '/';
  }
  const std::size_t rest = std::strlen(path);
  if (length + rest >= sizeof(absolute)) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(absolute + length, path, rest + 1);
  return true;
}

bool make_directories(const char* absolute) noexcept {
  if (is_directory(absolute)) return true;
  PathBuffer path;
  const std::size_t length = strnlen(absolute, sizeof(path) - 1);
  std::memcpy(path, absolute, length);
  path[length] = '\0';
  int error = 0;
  for (std::size_t at = 1; at <= length; ++at) {
    if (path[at] != '/' && path[at] != '\0') continue;
    const char kept = path[at];
    path[at] = '\0';
    // What is there already may answer with other errors than EEXIST; what counts is that it is there in the end.
    if (mkdir(path, 0700) != 0) error = errno;
    path[at] = kept;
  }
  if (is_directory(absolute)) return true;
  if (error != 0 && error != EEXIST) errno = error;
  return false;
}

MappedFile make_mapped_file(const char* directory, std::int32_t rank, std::uint32_t pid, std::size_t size,
                            PathBuffer& path) noexcept {
  const int fd = create_file(directory, rank, pid, path);
  if (fd < 0) return {blame(errno), nullptr, errno};
  fchmod(fd, 0600);  // the umask may have taken our own access
  MappedFile file;
  file.error = reserve(fd, size);
  if (file.error != 0) {
    file.result = blame(file.error);
  } else if (void* const base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); base == MAP_FAILED) {
    file.result = OpenResult::cannot_map;
    file.error = errno;
  } else {
    file.result = OpenResult::opened;
    file.base = static_cast<std::byte*>(base);
  }
  close(fd);
  if (file.base == nullptr) {
    unlink(path);
    path[0] = '\0';
  }
  return file;
}

}  // namespace devsan::trace
