#include "trace/process_info.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "trace/clock.h"

namespace devsan::trace {
namespace {

// Field 22 of /proc/PID/stat. The second field, the program's name, may hold blanks and brackets.
std::uint64_t read_start_ticks(const char* stat_file) noexcept {
  std::array<char, 1024> buffer;  // the fields up to the 22nd take far less
  const int fd = open(stat_file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (count <= 0) return 0;
  std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos) return 0;
  text.remove_prefix(name_end);
  for (int field = 2; field < 22; ++field) {
    const std::size_t blank = text.find(' ');
    if (blank == text.npos) return 0;
    text.remove_prefix(blank + 1);
  }
  std::uint64_t ticks = 0;
  std::from_chars(text.data(), text.data() + text.size(), ticks);
  return ticks;
}

}  // namespace

std::uint64_t start_ticks_of(std::uint32_t pid) noexcept {
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%u/stat", pid);
  return read_start_ticks(path.data());
}

ProcessInfo this_process() noexcept {
  ProcessInfo info;
  info.pid = static_cast<std::uint32_t>(getpid());
  info.parent_pid = static_cast<std::uint32_t>(getppid());
  info.place = job_place();
  info.start_time_ns = wall_clock_ns();
  info.start_ticks = read_start_ticks("/proc/self/stat");
  utsname names{};
  if (uname(&names) == 0) {
    std::memcpy(info.host.data(), names.nodename, strnlen(names.nodename, info.host.size()));
  }
  return info;
}

}  // namespace devsan::trace
