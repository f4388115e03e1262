// The tables that nearly every operator touches, in one page of 2 MiB where the kernel gives one. The work of an
// operator on tensors of some size pushes the addresses of small pages out of the processor's translation buffers;
// finding those of these tables again, each in a page of its own, was 0.6 % of a small transformer's step.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "hooks/inprocess/provenance/origin_table.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

inline constexpr std::size_t kLargePage = std::size_t{2} << 20;  // bytes

struct alignas(kLargePage) LargePage {
  // Maps it, all zeros, at large_page. Where the kernel gives no large pages, all works as well in small ones. False
  // where it has no memory at all.
  static bool make() noexcept;

  OriginTable origins;
  std::array<ThreadCaches, 7> caches;                    // of the first threads; later ones have theirs elsewhere
  std::atomic<trace::DeviceSlot> device_slots[1 << 16];  // the trace's numbers for devices, by type and index
};
static_assert(sizeof(LargePage) == kLargePage);

extern LargePage* large_page;  // never freed; null before any wrapper is in place

inline OriginTable& origin_table() noexcept {
  return large_page->origins;
}

}  // namespace devsan::hooks
