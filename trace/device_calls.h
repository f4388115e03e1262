// Changes records of device calls in place, where a trace file lies mapped. Every function may be called by any number
// of threads at once, takes no lock and allocates nothing; a null record is passed over.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "trace/file_access.h"
#include "trace/memory_layout.h"

namespace devsan::trace {

// What became of one call. Neither `failed` nor `captured`: it was carried out.
struct CallOutcome {
  bool failed = false;
  bool captured = false;
  bool host_waited = false;
  std::uint64_t bytes = 0;
  std::uint64_t wait_ns = 0;
};

inline void add_to(std::uint64_t& counter, std::uint64_t amount) noexcept {
  if (amount != 0) atom(counter).fetch_add(amount, std::memory_order_relaxed);
}

inline void count_call(DeviceCallPayload* call, const CallOutcome& outcome) noexcept {
  if (call == nullptr) return;
  if (outcome.failed) return add_to(call->failed, 1);
  if (outcome.captured) return add_to(call->captured, 1);
  add_to(call->calls, 1);
  add_to(call->bytes, outcome.bytes);
  add_to(call->waits, outcome.host_waited ? 1 : 0);
  add_to(call->wait_ns, outcome.wait_ns);
}

inline void count_allocated(DeviceMemoryPayload* memory, std::uint64_t bytes, std::uint32_t step) noexcept {
  if (memory == nullptr) return;
  add_to(memory->blocks, 1);
  const std::uint64_t live = atom(memory->live).fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::uint64_t peak = atom(memory->peak).load(std::memory_order_relaxed);
  while (live > peak) {
    if (!atom(memory->peak).compare_exchange_weak(peak, live, std::memory_order_relaxed)) continue;
    atom(memory->peak_step).store(step, std::memory_order_relaxed);
    break;
  }
}

// Only what was counted as allocated may be taken off again.
inline void count_released(DeviceMemoryPayload* memory, std::uint64_t bytes) noexcept {
  if (memory == nullptr) return;
  atom(memory->blocks).fetch_sub(1, std::memory_order_relaxed);
  atom(memory->live).fetch_sub(bytes, std::memory_order_relaxed);
}

// The entry's number is taken away before the rest changes, and given last. Word by word and each at once: a thread
// that is kCallRingEntries calls behind may be at the same entry.
inline void note_call(CallRingPayload* ring, const DeviceCallEvent& event) noexcept {
  if (ring == nullptr) return;
  using Words = std::array<std::uint32_t, sizeof(DeviceCallEvent) / sizeof(std::uint32_t)>;
  constexpr std::size_t kSequence = offsetof(DeviceCallEvent, sequence) / sizeof(std::uint32_t);
  const std::uint64_t number = atom(ring->next).fetch_add(1, std::memory_order_relaxed);
  DeviceCallEvent& entry = ring->entries[number % kCallRingEntries];
  // An exchange, so that nothing is written before it; a fence would do, but ThreadSanitizer knows none.
  atom(entry.sequence).exchange(0, std::memory_order_acq_rel);
  const Words words = std::bit_cast<Words>(event);
  auto* const place = reinterpret_cast<std::uint32_t*>(&entry);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != kSequence) atom(place[i]).store(words[i], std::memory_order_relaxed);
  }
  atom(entry.sequence).store(static_cast<std::uint32_t>(number) + 1, std::memory_order_release);
}

}  // namespace devsan::trace
