#include "preload/cuda_calls.h"

#include "trace/fixed_text.h"

namespace devsan::cuda {
namespace {

constexpr std::size_t kSlots = 512;
static_assert(kCallCount * 2 <= kSlots);

constexpr std::uint32_t hash_of(const char* text) {
  std::uint32_t hash = 0x811c9dc5u;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x01000193u;
  return hash ^ hash >> 16;
}

// Index + 1 of each call at the hash of its symbol, or behind it.
constexpr auto kBySymbol = [] {
  std::array<std::uint16_t, kSlots> slots{};
  for (std::size_t i = 0; i < kCallCount; ++i) {
    std::size_t at = hash_of(kCalls[i].symbol) % kSlots;
    while (slots[at] != 0) at = (at + 1) % kSlots;
    slots[at] = static_cast<std::uint16_t>(i + 1);
  }
  return slots;
}();

bool is_per_thread(StreamMode mode) noexcept {
  return mode == StreamMode::ptds || mode == StreamMode::ptsz;
}

}  // namespace

CallId find_call(const char* symbol) noexcept {
  if (!may_be_call(symbol)) return CallId::count;
  for (std::size_t at = hash_of(symbol) % kSlots; kBySymbol[at] != 0; at = (at + 1) % kSlots) {
    const std::size_t index = kBySymbol[at] - 1u;
    if (same_text(kCalls[index].symbol, symbol)) return static_cast<CallId>(index);
  }
  return CallId::count;
}

CallId find_entry_point(const char* base, int version, bool per_thread_streams) noexcept {
  if (!may_be_call(base)) return CallId::count;
  std::size_t best = kCallCount;
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const Call& call = kCalls[i];
    if (call.runtime || call.since > version || !same_text(call.base, base)) continue;
    if (call.mode != StreamMode::none && is_per_thread(call.mode) != per_thread_streams) continue;
    if (best == kCallCount || call.since > kCalls[best].since) best = i;
  }
  return static_cast<CallId>(best);
}

}  // namespace devsan::cuda
