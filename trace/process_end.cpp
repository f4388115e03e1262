#include "trace/process_end.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

#include "trace/process_info.h"

namespace devsan::trace {

// A process of another host, or of a container that cannot be seen from here, cannot be asked for; its host's name
// differs.
std::optional<bool> has_ended(const FileHeader& header) noexcept {
  const ProcessInfo here = this_process();
  if (here.host != header.host || here.start_ticks == 0 || header.start_ticks == 0) return std::nullopt;
  return start_ticks_of(header.pid) != header.start_ticks;
}

bool tell_end(const char* path, std::uint32_t pid, const ToldEnd& end) noexcept {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  FileHeader header;
  const bool ours = read(fd, &header, sizeof header) == static_cast<ssize_t>(sizeof header) && header.magic == kMagic &&
                    header.major_version == kMajorVersion && header.pid == pid;
  const bool told = ours && pwrite(fd, &end, sizeof end, offsetof(FileHeader, told_end)) == sizeof end;
  close(fd);
  return told;
}

}  // namespace devsan::trace
