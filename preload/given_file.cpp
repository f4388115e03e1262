#include "preload/given_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace devsan {

// A pipe would be waited for, and could be read only once.
bool read_given_file(const std::string& path, std::size_t most, std::string* text) noexcept {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat status {};
  int error = fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) ? ESPIPE : 0;
  text->resize(most);
  std::size_t filled = 0;
  while (error == 0 && filled < text->size()) {
    const ssize_t got = read(file, text->data() + filled, text->size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  close(file);
  text->resize(filled);
  errno = error;
  return error == 0;
}

}  // namespace devsan
