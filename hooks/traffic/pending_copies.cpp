#include "hooks/traffic/pending_copies.h"

#include <bit>

#include "hooks/process/often_read.h"
#include "hooks/process/spin_guard.h"
#include "trace/recorder.h"

namespace devsan::hooks {

DEVSAN_OFTEN_READ constinit std::atomic<std::uint64_t> attention{0};
constinit PendingCopies pending_copies{};

namespace {

constexpr std::uint64_t kAllCopies = (std::uint64_t{1} << PendingCopies::kCopies) - 1;

std::uint64_t pending() noexcept {
  return attention.load(std::memory_order_relaxed) & kAllCopies;
}

constexpr std::uint64_t bit(unsigned copy) noexcept {
  return std::uint64_t{1} << copy;
}

}  // namespace

PendingCopies::Stream* PendingCopies::stream_of(StreamKey key) noexcept {
  for (Stream& stream : streams_) {
    if (!stream.used) stream = {key, 0, true};
    if (stream.key == key) return &stream;
  }
  return nullptr;
}

// Linear probing from the event's place; an old event of the same places makes room.
PendingCopies::Event* PendingCopies::event_of(const void* event, bool make) noexcept {
  constexpr std::size_t kProbes = 8;
  const std::size_t first = (reinterpret_cast<std::uintptr_t>(event) >> 4) * 0x9E3779B97F4A7C15u >> 54;
  static_assert(kEvents == 1 << 10, "10 bits of the hash are used");
  Event* free = nullptr;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Event& entry = events_[(first + probe) % kEvents];
    if (entry.key == event) return &entry;
    if (free == nullptr && entry.key == nullptr) free = &entry;
  }
  if (!make) return nullptr;
  if (free == nullptr) free = &events_[first];
  free->key = event;
  return free;
}

void PendingCopies::finish(std::uint64_t copies) noexcept {
  for (std::uint64_t rest = copies & pending(); rest != 0; rest &= rest - 1) {
    PendingCopy& copy = copies_[static_cast<unsigned>(std::countr_zero(rest))];
    trace::Recorder::count_settled(copy.outside);
    copy.outside = nullptr;
  }
  attention.fetch_and(~(copies & kAllCopies), std::memory_order_relaxed);
}

void PendingCopies::queue(StreamKey on, const PendingCopy& copy) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  Stream* stream = stream_of(on);
  if (stream == nullptr) return;
  const unsigned place = next_;
  next_ = (next_ + 1) % kCopies;
  finish(bit(place));
  for (Stream& each : streams_) each.before &= ~bit(place);
  for (Event& each : events_) each.before &= ~bit(place);
  copies_[place] = copy;
  stream->before |= bit(place);
  attention.fetch_or(bit(place), std::memory_order_relaxed);
}

void PendingCopies::record_event(const void* event, StreamKey on) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  const Stream* stream = stream_of(on);
  // A stream that is not known comes after nothing known; to be on the safe side, after everything.
  event_of(event, true)->before = stream != nullptr ? stream->before : kAllCopies;
}

void PendingCopies::forget_event(const void* event) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  if (Event* known = event_of(event, false)) *known = {};
}

void PendingCopies::wait_event(StreamKey stream, const void* event) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  Stream* waiting = stream_of(stream);
  const Event* known = event_of(event, false);
  if (waiting != nullptr) waiting->before |= known != nullptr ? known->before : pending();
}

void PendingCopies::host_saw_event(const void* event) noexcept {
  if (pending() == 0) return;
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  const Event* known = event_of(event, false);
  finish(known != nullptr ? known->before : kAllCopies);
}

void PendingCopies::host_saw_stream(StreamKey stream) noexcept {
  if (pending() == 0) return;
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  const Stream* known = stream_of(stream);
  finish(known != nullptr ? known->before : kAllCopies);
}

void PendingCopies::host_saw_device(int device) noexcept {
  if (pending() == 0) return;
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  for (const Stream& stream : streams_) {
    if (stream.used && stream.key.device == device) finish(stream.before);
  }
}

void PendingCopies::forget_storage(const void* storage) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  for (unsigned k = 0; k < kCopies; ++k) {
    PendingCopy& copy = copies_[k];
    if (copy.host.storage == storage) {
      copy.host = {};
      copy.outside = nullptr;  // whoever read it has done so
    }
    if (copy.device.storage == storage) copy.device = {};
    if (copy.host.storage == nullptr && copy.device.storage == nullptr) finish(bit(k));
  }
}

void PendingCopies::reset_after_fork() noexcept {
  lock_.clear();
  attention.store(0, std::memory_order_relaxed);
}

template <class Collides>
std::optional<PendingCopy> PendingCopies::first_that(Collides collides) noexcept {
  const std::uint64_t now = pending();
  for (unsigned k = 0; k < kCopies; ++k) {
    if ((now & bit(k)) == 0 || !collides(copies_[k], bit(k))) continue;
    finish(bit(k));
    return copies_[k];
  }
  return std::nullopt;
}

// Reading the source of a copy to the device does no harm.
std::optional<PendingCopy> PendingCopies::hit_by_host(const Extent& memory, bool writes) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return std::nullopt;
  return first_that(
      [&](const PendingCopy& copy, std::uint64_t) { return (copy.to_host || writes) && overlap(copy.host, memory); });
}

std::optional<PendingCopy> PendingCopies::hit_by_reader(const void* begin, std::uint64_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const SpinGuard guard(lock_);
  if (!guard.held()) return std::nullopt;
  return first_that([&](const PendingCopy& copy, std::uint64_t) {
    const auto storage = reinterpret_cast<std::uintptr_t>(copy.host_begin);
    if (!copy.to_host || storage == 0 || address + bytes <= storage) return false;
    Extent read{copy.host.storage};
    read.begin = address > storage ? address - storage : 0;
    read.end = address + bytes - storage;
    return overlap(copy.host, read);
  });
}

// Nor does reading the source of a copy to the host, on any stream.
std::optional<PendingCopy> PendingCopies::hit_by_stream(const Extent& memory, StreamKey stream, bool writes) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return std::nullopt;
  const Stream* known = stream_of(stream);
  const std::uint64_t before = known != nullptr ? known->before : kAllCopies;
  return first_that([&](const PendingCopy& copy, std::uint64_t own) {
    return (before & own) == 0 && (!copy.to_host || writes) && overlap(copy.device, memory);
  });
}

std::optional<PendingCopy> PendingCopies::hit_outside(const Extent& memory) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return std::nullopt;
  const std::uint64_t now = pending();
  for (unsigned k = 0; k < kCopies; ++k) {
    const PendingCopy& copy = copies_[k];
    if ((now & bit(k)) != 0 && copy.to_host && copy.outside == nullptr && overlap(copy.host, memory)) return copy;
  }
  return std::nullopt;
}

void PendingCopies::remember_outside(const Extent& memory, trace::TrafficPayload* record) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return;
  for (unsigned k = 0; k < kCopies; ++k) {
    PendingCopy& copy = copies_[k];
    if ((pending() & bit(k)) != 0 && copy.to_host && overlap(copy.host, memory)) copy.outside = record;
  }
}

std::optional<PendingCopy> PendingCopies::hit_by_copy(const Extent& memory, StreamKey stream, bool writes) noexcept {
  const SpinGuard guard(lock_);
  if (!guard.held()) return std::nullopt;
  const Stream* known = stream_of(stream);
  const std::uint64_t before = known != nullptr ? known->before : kAllCopies;
  return first_that([&](const PendingCopy& copy, std::uint64_t own) {
    return (before & own) == 0 && (copy.to_host || writes) && overlap(copy.host, memory);
  });
}

}  // namespace devsan::hooks
