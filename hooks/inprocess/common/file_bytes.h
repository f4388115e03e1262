// The bytes of an open file.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

namespace devsan::hooks {

// From `offset` on, up to `room` bytes; fewer where the file ends or cannot be read. The descriptor's position, which
// others may share, stays where it is.
inline std::size_t read_bytes(int fd, char* to, std::size_t room, off_t offset = 0) noexcept {
  std::size_t size = 0;
  while (size < room) {
    const ssize_t got = ::pread(fd, to + size, room - size, offset + static_cast<off_t>(size));
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

}  // namespace devsan::hooks
