#include "preload/own_folder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace devsan {

FixedPath own_folder() noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  // The kernel follows the links; realpath() could take memory from the heap.
  const int file = open(info.dli_fname, O_PATH | O_CLOEXEC);
  if (file < 0) return {};
  FixedText<40> link("/proc/self/fd/");
  link.append_number(static_cast<unsigned>(file));
  char path[kPathSize];
  const ssize_t length = readlink(link.c_str(), path, sizeof path - 1);
  close(file);
  path[length > 0 ? length : 0] = '\0';
  return parent_path(length > 0 ? path : info.dli_fname, 1);
}

}  // namespace devsan
