#include "preload/out_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "preload/process_maps.h"

namespace devsan {
namespace {

constexpr int kMaxGenerations = 64;

// Field 4 of /proc/PID/stat, behind the name, which may hold anything.
int parent_of(int pid) noexcept {
  FixedText<40> name;
  name.append("/proc/").append_number(static_cast<unsigned>(pid)).append("/stat");
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[512];
  const ssize_t bytes = read(file, text, sizeof text - 1);
  close(file);
  if (bytes <= 0) return 0;
  text[bytes] = '\0';
  const char* after_name = std::strrchr(text, ')');
  if (after_name == nullptr || std::strlen(after_name) < 5) return 0;
  return std::atoi(after_name + 4);
}

bool ends_with(std::string_view text, std::string_view end) noexcept {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

// "rank0.123.devsan", "rank-.123-1.devsan"
bool is_trace_name(std::string_view name) noexcept {
  constexpr std::string_view kStart = "rank";
  constexpr std::string_view kEnd = ".devsan";
  if (name.size() <= kStart.size() + kEnd.size() || name.substr(0, kStart.size()) != kStart || !ends_with(name, kEnd)) {
    return false;
  }
  for (const char c : name.substr(kStart.size(), name.size() - kStart.size() - kEnd.size())) {
    if ((c < '0' || c > '9') && c != '.' && c != '-') return false;
  }
  return true;
}

// The kernel writes a line feed in a path as \012, and nothing else.
void append_unescaped(PathText* out, std::string_view path) noexcept {
  for (std::size_t at = 0; at < path.size();) {
    if (path.substr(at, 4) == "\\012") {
      out->append("\n");
      at += 4;
    } else {
      out->append(path.substr(at++, 1));
    }
  }
}

void look_at(int pid, Ancestry* ancestry) noexcept {
  bool torch = false;
  bool devsan = false;
  for_each_mapping(pid, [&](const Mapping& mapping) {
    const std::string_view path = mapping.path;
    const std::string_view name = file_name(path);
    torch = torch || name == "libtorch_cpu.so";
    devsan = devsan || name == "libdevsan.so";
    if (path.empty() || path[0] != '/' || !is_trace_name(name) || !ancestry->directory.empty()) return true;
    append_unescaped(&ancestry->trace, path);
    append_unescaped(&ancestry->directory, path.substr(0, path.size() - name.size() - 1));
    return true;
  });
  if (devsan) ancestry->root = pid;
  ancestry->another_started = ancestry->another_started || !ancestry->directory.empty() || (torch && devsan);
}

void append_working_directory(PathText* path) noexcept {
  char working[PATH_MAX];
  // Unreachable when it was deleted; then making the directory fails, and says so.
  path->append(getcwd(working, sizeof working) != nullptr ? working : ".");
}

}  // namespace

Ancestry look_at_ancestors() noexcept {
  Ancestry ancestry;
  int pid = getppid();
  for (int i = 0; i < kMaxGenerations && pid > 0; ++i) {
    look_at(pid, &ancestry);
    pid = parent_of(pid);
  }
  return ancestry;
}

PathText choose_directory(const char* wanted, const Ancestry& ancestry) noexcept {
  // A relative path means one directory for the run: that of its first process, wherever a later one works.
  if (wanted[0] != '/' && !ancestry.directory.empty()) return ancestry.directory;
  PathText path;
  if (wanted[0] == '/') return PathText(wanted);
  append_working_directory(&path);
  path.append("/");
  if (wanted[0] != '\0') return path.append(wanted), path;
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  path.append("devsan-out/");
  path.append_number(static_cast<unsigned>(parts.tm_year + 1900), 4)
      .append_number(static_cast<unsigned>(parts.tm_mon + 1), 2)
      .append_number(static_cast<unsigned>(parts.tm_mday), 2)
      .append("-")
      .append_number(static_cast<unsigned>(parts.tm_hour), 2)
      .append_number(static_cast<unsigned>(parts.tm_min), 2)
      .append_number(static_cast<unsigned>(parts.tm_sec), 2)
      .append("-")
      .append_number(static_cast<unsigned>(getpid()));
  return path;
}

bool make_directories(const char* path) noexcept {
  PathText part;
  for (const char* at = path; *at != '\0'; ++at) {
    if (*at == '/' && at != path && mkdir(part.c_str(), 0700) != 0 && errno != EEXIST && errno != EISDIR &&
        errno != EROFS && errno != EACCES) {
      return false;
    }
    part.append({at, 1});
  }
  if (part.truncated()) {
    errno = ENAMETOOLONG;
    return false;
  }
  if (mkdir(path, 0700) == 0) return true;
  struct stat status;
  const int reason = errno;
  if (reason == EEXIST && stat(path, &status) == 0) {
    errno = ENOTDIR;
    return S_ISDIR(status.st_mode);
  }
  errno = reason;
  return false;
}

}  // namespace devsan
