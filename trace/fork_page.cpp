#include "trace/fork_page.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace devsan::trace {
namespace {

constinit std::atomic<ForkPage*> g_wiped_by_libc{nullptr};

void wipe_in_child() {
  ForkPage* const page = g_wiped_by_libc.load(std::memory_order_relaxed);
  page->epoch.epoch.store(0, std::memory_order_relaxed);
  page->reopening.store(ReopenState::untouched, std::memory_order_relaxed);
}

bool wipe_with_libc(ForkPage* page) {
  const bool first = g_wiped_by_libc.exchange(page, std::memory_order_relaxed) == nullptr;
  return !first || pthread_atfork(nullptr, nullptr, wipe_in_child) == 0;
}

}  // namespace

ForkPageResult make_fork_page(WipedBy preferred) noexcept {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  ForkPage* const page = new (memory) ForkPage;
  if (preferred == WipedBy::kernel && madvise(memory, size, MADV_WIPEONFORK) == 0) return {page, WipedBy::kernel};
  if (wipe_with_libc(page)) return {page, WipedBy::libc};
  munmap(memory, size);
  return {};
}

}  // namespace devsan::trace
