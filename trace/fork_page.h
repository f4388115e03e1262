// A page of memory that reads as zero in a forked child, from its first instruction on.
#pragma once

#include <atomic>
#include <cstdint>

namespace devsan::trace {

// One word, zero in a process that does not record (never opened, closed, or a fresh fork child). Read on every
// operator, so it has a cache line to itself.
struct alignas(64) EpochPage {
  std::atomic<std::uint64_t> epoch{0};
};

// Who makes the file of this process. Wiped with the page, so that a child never inherits a turn that was taken by a
// thread it does not have.
enum class ReopenState : std::uint32_t { untouched = 0, working = 1, settled = 2 };

struct ForkPage {
  EpochPage epoch;
  alignas(64) std::atomic<ReopenState> reopening;
};

enum class WipedBy {
  kernel,  // MADV_WIPEONFORK: every way of forking
  libc,    // pthread_atfork: only fork() of the C library; others must be told apart by their pid
};

struct ForkPageResult {
  ForkPage* page = nullptr;  // null when no such page can be had
  WipedBy wiped_by = WipedBy::kernel;
};

// `preferred` is for tests: without the kernel's help (before Linux 4.14, or in gVisor) the C library's is used.
ForkPageResult make_fork_page(WipedBy preferred = WipedBy::kernel) noexcept;

}  // namespace devsan::trace
