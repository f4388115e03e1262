// Small caches of one thread: what the last operators found out, direct-mapped, so that finding it again costs a
// compare. Nothing in them is ever wrong: a site holds while no known code object died, a lineage node never changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// A site by the instructions of its two frames (instruction_address).
struct alignas(32) SiteMemo {
  std::uintptr_t innermost;
  std::uintptr_t user;
  std::uint32_t generation;  // of the code table
  trace::SiteId site;
};

// The code objects of the frames from the innermost (without it) to the user's: while they are the same, so are their
// marks, and the last of them is the user's.
struct alignas(128) ChainMemo {
  static constexpr std::uint32_t kLongest = 14;
  std::uint32_t generation;
  std::uint16_t length;
  std::uint16_t marks;
  const void* codes[kLongest];
};

// The calls that led to an operator (callers.h), by the instructions of the frames from the innermost outwards.
struct CallersMemo {
  static constexpr std::size_t kLongest = 24;
  std::array<std::uintptr_t, kLongest> instructions;
  std::uint32_t generation;
  std::uint32_t walked;
  std::uint32_t calls;
};

// A lineage node as two words: as asked for, so its depth is 0. The comparison of a std::array would call memcmp.
struct NodeWords {
  std::uint64_t low;
  std::uint64_t high;

  bool operator==(const NodeWords& other) const noexcept { return ((low ^ other.low) | (high ^ other.high)) == 0; }
};

struct alignas(32) LineageMemo {
  NodeWords node;
  trace::LineageId id;
};

// All that most operators look for, by the instruction of the innermost frame: in one cache line, since each that the
// program's own work has pushed out has to be waited for.
struct alignas(64) FrameMemo {
  std::uintptr_t instruction;
  std::uint32_t generation;
  bool has_site;  // site.id is the one of that frame alone; its marks are known in any case
  CallSite site;
  trace::SiteId whole_site;  // the last one with a user's frame, as in SiteMemo,
  trace::LineageId lineage;  // and the last node that was made there, as in LineageMemo
  std::uintptr_t user;
  NodeWords node;
};
static_assert(sizeof(FrameMemo) == 64);

struct ThreadCaches {
  // For the calling thread, perhaps those that a dead thread left; null when all are in use, or memory is short.
  static ThreadCaches* claim(std::uint32_t tid) noexcept;

  // Two instructions may have their places at one: where the first of the two holds another, the second is the place.
  FrameMemo& frame(std::uintptr_t instruction) noexcept {
    const std::size_t first = (instruction * kSpread) >> 55;
    return frames[frames[first].instruction == instruction ? first : first ^ 1];
  }
  // Where to remember what frame() does not have.
  FrameMemo& vacant_frame(std::uintptr_t instruction) noexcept {
    const std::size_t first = (instruction * kSpread) >> 55;
    const bool free = frames[first].generation != code_table.generation();
    return frames[free ? first : first ^ 1];
  }

  SiteMemo& site(std::uintptr_t innermost, std::uintptr_t user) noexcept {
    return sites[((innermost ^ user << 7) * kSpread) >> 55];
  }

  // By the innermost frame's code.
  ChainMemo& chain(const void* code) noexcept {
    return chains[(reinterpret_cast<std::uintptr_t>(code) * kSpread) >> 60];
  }

  // By the instructions, mixed.
  CallersMemo& callers(std::uintptr_t mixed) noexcept { return calls[(mixed * kSpread) >> 58]; }

  LineageMemo& lineage(const NodeWords& node) noexcept { return nodes[((node.low ^ node.high << 20) * kSpread) >> 53]; }

 private:
  static constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;
  FrameMemo frames[1 << 9];
  SiteMemo sites[1 << 9];
  ChainMemo chains[1 << 4];
  CallersMemo calls[1 << 6];
  LineageMemo nodes[1 << 11];
};

// Where the operator that `frame` calls was called from. `whole`: with the user's frame, which has to be walked to
// where the innermost one is torch's; otherwise the innermost frame alone counts. The site is `none` where there are no
// Python frames or the trace is full. `memo` becomes what the caches keep for the frame; null where that is nothing.
[[gnu::always_inline]] inline CallSite call_site(ThreadCaches* caches, const void* frame, bool whole,
                                                 FrameMemo*& memo) noexcept {
  memo = nullptr;
  if (caches != nullptr && frame != nullptr) [[likely]] {
    const std::uintptr_t instruction = instruction_address(frame);
    FrameMemo& known = caches->frame(instruction);
    if (known.instruction == instruction && known.generation == code_table.generation()) [[likely]] {
      memo = &known;
      if (whole && (known.site.marks & kTorchCode) != 0) return walked_site(caches, known, frame);
      if (known.has_site) [[likely]]
        return known.site;
    }
  }
  return call_site_again(caches, frame, whole);
}

inline CallSite call_site(ThreadCaches* caches, const void* frame, bool whole) noexcept {
  FrameMemo* memo = nullptr;
  return call_site(caches, frame, whole, memo);
}

}  // namespace devsan::hooks
