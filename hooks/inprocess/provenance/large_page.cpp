#include "hooks/inprocess/provenance/large_page.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "hooks/inprocess/common/often_read.h"

namespace devsan::hooks {

DEVSAN_OFTEN_READ constinit LargePage* large_page = nullptr;

bool LargePage::make() noexcept {
  const int saved_errno = errno;
  std::size_t room = 2 * kLargePage;
  void* begin = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin != MAP_FAILED) {
    void* page = begin;
    std::align(kLargePage, kLargePage, page, room);
    char* const first = static_cast<char*>(begin);
    char* const aligned = static_cast<char*>(page);
    if (aligned != first) ::munmap(first, static_cast<std::size_t>(aligned - first));
    ::munmap(aligned + kLargePage, room - kLargePage);
    ::madvise(page, kLargePage, MADV_HUGEPAGE);
    large_page = static_cast<LargePage*>(page);
  }
  errno = saved_errno;
  return begin != MAP_FAILED;
}

}  // namespace devsan::hooks
