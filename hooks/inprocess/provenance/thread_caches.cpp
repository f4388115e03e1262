#include "hooks/inprocess/provenance/thread_caches.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "hooks/inprocess/provenance/large_page.h"

namespace devsan::hooks {

namespace {

struct Loan {
  std::atomic<std::uint32_t> tid{0};
  ThreadCaches* caches = nullptr;  // of the first ones in the large page
};
constinit Loan loans[256]{};

bool thread_is_gone(std::uint32_t tid) noexcept {
  const int saved_errno = errno;
  const bool gone = ::syscall(SYS_tgkill, ::getpid(), static_cast<int>(tid), 0) != 0 && errno == ESRCH;
  errno = saved_errno;
  return gone;
}

}  // namespace

ThreadCaches* ThreadCaches::claim(std::uint32_t tid) noexcept {
  for (Loan& loan : loans) {
    std::uint32_t holder = loan.tid.load(std::memory_order_acquire);
    if (holder != 0 && holder != tid && !thread_is_gone(holder)) continue;
    if (!loan.tid.compare_exchange_strong(holder, tid)) continue;
    const auto place = static_cast<std::size_t>(&loan - loans);
    if (place < large_page->caches.size()) return &large_page->caches[place];
    if (loan.caches == nullptr) {
      void* memory = ::mmap(nullptr, sizeof(ThreadCaches), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory != MAP_FAILED) loan.caches = static_cast<ThreadCaches*>(memory);
    }
    return loan.caches;
  }
  return nullptr;
}

}  // namespace devsan::hooks
