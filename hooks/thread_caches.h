// Small caches of one thread: what the last operators found out, direct-mapped, so that finding it again costs a
// compare. Nothing in them is ever wrong: a site holds while no known code object died, a lineage node never changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hooks/sites.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

struct SiteMemo {
  std::uintptr_t innermost;  // FramePosition::address
  std::uintptr_t user;
  std::uint32_t generation;  // of the code table
  trace::SiteId site;
};

struct LineageMemo {
  trace::LineageNode node;  // as asked for: its depth is 0
  trace::LineageId id;
};

struct ThreadCaches {
  // For the calling thread, perhaps those that a dead thread left; null when all are in use, or memory is short.
  static ThreadCaches* claim(std::uint32_t tid) noexcept;

  SiteMemo& site(std::uintptr_t innermost, std::uintptr_t user) noexcept {
    return sites[((innermost ^ user << 7) * kSpread) >> 55];
  }

  LineageMemo& lineage(const trace::LineageNode& node) noexcept {
    const auto step = std::uint64_t(node.parent) << 32 | std::uint32_t(node.site);
    return nodes[((step ^ std::uint64_t(node.op) << 20) * kSpread) >> 54];
  }

 private:
  static constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;
  SiteMemo sites[1 << 9];
  LineageMemo nodes[1 << 10];
};

// The site in the trace. `caches` may be null. `none` where there are no Python frames or the trace is full.
inline trace::SiteId find_site(ThreadCaches* caches, const CallerFrames& caller) noexcept {
  const std::uintptr_t innermost = caller.innermost.address();
  const std::uintptr_t user = caller.user.address();
  if (caches != nullptr) [[likely]] {
    const SiteMemo& memo = caches->site(innermost, user);
    if (memo.innermost == innermost && memo.user == user && memo.generation == code_table.generation()) [[likely]] {
      return memo.site;
    }
  }
  return find_site_again(caches, caller);
}

}  // namespace devsan::hooks
