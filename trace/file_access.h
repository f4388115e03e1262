// How the writer touches the mapped file: counters and published marks are atomic, in place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "trace/file_layout.h"

namespace devsan::trace {

// In the file, as in Recorder: tables of ids begin with an empty entry, so that 0 means none.
inline constexpr std::uint32_t kFirstEntry = 1;
inline constexpr std::uint64_t kFirstStringOffset = sizeof(std::uint32_t);

template <class Word>
std::atomic_ref<Word> atom(Word& word) noexcept {
  static_assert(std::atomic_ref<Word>::is_always_lock_free);
  return std::atomic_ref<Word>(word);
}

template <class Count>
void count_one(Count& counter) noexcept {
  // Stops at the top: a wrapped count of what was lost would say that nothing was.
  if (atom(counter).load(std::memory_order_relaxed) != std::numeric_limits<Count>::max()) {
    atom(counter).fetch_add(1, std::memory_order_relaxed);
  }
}

template <class Count>
inline constexpr Count kNoRoom = std::numeric_limits<Count>::max();

// Takes `amount` from a section that holds `limit`; returns where it begins. What does not fit leaves the counter
// alone, so that something smaller may still fit later and a reader never looks past the end.
template <class Count>
Count take_room(Count& used, std::uint64_t limit, std::uint64_t amount) noexcept {
  Count begin = atom(used).load(std::memory_order_relaxed);
  do {
    if (begin > limit || amount > limit - begin) return kNoRoom<Count>;
  } while (!atom(used).compare_exchange_weak(begin, static_cast<Count>(begin + amount), std::memory_order_acq_rel,
                                             std::memory_order_relaxed));
  return begin;
}

}  // namespace devsan::trace
