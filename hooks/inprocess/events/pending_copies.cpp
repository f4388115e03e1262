#include "hooks/inprocess/events/pending_copies.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "hooks/inprocess/common/address_slot.h"
#include "hooks/inprocess/common/often_read.h"
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

// A turn with the books. After it the pages of copies that are over are opened, and those of others in the same memory
// closed again: not under the lock, since both are system calls.
class PendingCopies::Turn {
 public:
  explicit Turn(PendingCopies& copies) noexcept : copies_(copies), guard_(std::in_place, copies.lock_) {
    if (held()) copies.over_count_ = 0;
  }
  ~Turn() {
    if (!held() || (copies_.over_count_ == 0 && !closes_)) return;
    const auto over = copies_.over_;
    const std::span open(over.data(), copies_.over_count_);
    std::array<Range, kCopies> close;
    unsigned count = 0;
    for (std::uint64_t rest = pending(); rest != 0; rest &= rest - 1) {
      const PendingCopy& copy = copies_.copies_[static_cast<unsigned>(std::countr_zero(rest))];
      const bool opened = std::ranges::find(open, copy.host_begin) != open.end();
      if (!copy.closed || !(opened || copy.host_begin == closes_)) continue;
      close[count++] = {copy.host_begin, copy.host.begin, copy.host.end, !copy.to_host};
    }
    guard_.reset();
    for (const void* block : open) copies_.pages_->open(block);
    // Where two share a page, what is closed for everything stays so.
    std::partition(close.begin(), close.begin() + count, [](const Range& one) { return one.for_writes; });
    for (const Range& one : std::span(close.data(), count)) {
      copies_.pages_->close(one.block, one.begin, one.end, one.for_writes);
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool held() const noexcept { return guard_->held(); }
  void close(const void* block) noexcept { closes_ = block; }

 private:
  struct Range {
    const void* block;
    std::uint64_t begin;
    std::uint64_t end;
    bool for_writes;
  };

  PendingCopies& copies_;
  std::optional<SpinGuard> guard_;
  const void* closes_ = nullptr;
};

const void*& PendingCopies::given_place(const void* host_begin) noexcept {
  return given_[slot_of_address<kGiven>(host_begin)];
}

void PendingCopies::close_if_given(PendingCopy& copy, Turn& turn) noexcept {
  if (pages_ == nullptr || copy.host_begin == nullptr || given_place(copy.host_begin) != copy.host_begin) return;
  copy.closed = true;
  turn.close(copy.host_begin);
}

PendingCopies::Stream* PendingCopies::stream_of(StreamKey key) noexcept {
  if (!key.known()) return nullptr;
  Stream* free = nullptr;
  for (Stream& stream : streams_) {
    if (stream.used && stream.key == key) return &stream;
    if (free == nullptr && !stream.used) free = &stream;
  }
  if (free != nullptr) *free = {key, 0, true};
  return free;
}

// Linear probing from the event's place; an old event of the same places makes room.
PendingCopies::Event* PendingCopies::event_of(const void* event, bool make) noexcept {
  constexpr std::size_t kProbes = 8;
  const std::size_t first = slot_of_address<kEvents>(event);
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
    if (copy.closed) over_[over_count_++] = copy.host_begin;
    copy.closed = false;
  }
  attention.fetch_and(~(copies & kAllCopies), std::memory_order_relaxed);
}

void PendingCopies::queue(StreamKey on, const PendingCopy& copy) noexcept {
  Turn turn(*this);
  if (!turn.held()) return;
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
  close_if_given(copies_[place], turn);
}

void PendingCopies::record_event(const void* event, StreamKey on) noexcept {
  Turn turn(*this);
  if (!turn.held()) return;
  const Stream* stream = stream_of(on);
  // A stream that is not known comes after nothing known; to be on the safe side, after everything.
  event_of(event, true)->before = stream != nullptr ? stream->before : kAllCopies;
}

void PendingCopies::forget_event(const void* event) noexcept {
  Turn turn(*this);
  if (!turn.held()) return;
  if (Event* known = event_of(event, false)) *known = {};
}

void PendingCopies::wait_event(StreamKey stream, const void* event) noexcept {
  Turn turn(*this);
  if (!turn.held()) return;
  Stream* waiting = stream_of(stream);
  const Event* known = event_of(event, false);
  const std::uint64_t before = known != nullptr ? known->before : pending();
  if (waiting != nullptr) {
    waiting->before |= before;
  } else {
    finish(before);  // whoever it is that waits, nobody is told to come too early
  }
}

// Nobody can wait for its copies by that name any more.
void PendingCopies::forget_stream(StreamKey stream) noexcept {
  Turn turn(*this);
  if (!turn.held()) return;
  for (Stream& each : streams_) {
    if (!each.used || each.key != stream) continue;
    finish(each.before);
    each = {};
  }
}

void PendingCopies::host_saw_event(const void* event) noexcept {
  if (pending() == 0) return;
  Turn turn(*this);
  if (!turn.held()) return;
  const Event* known = event_of(event, false);
  finish(known != nullptr ? known->before : kAllCopies);
}

void PendingCopies::host_saw_stream(StreamKey stream) noexcept {
  if (pending() == 0) return;
  Turn turn(*this);
  if (!turn.held()) return;
  const Stream* known = stream_of(stream);
  finish(known != nullptr ? known->before : kAllCopies);
}

void PendingCopies::host_saw_device(int device) noexcept {
  if (pending() == 0) return;
  Turn turn(*this);
  if (!turn.held()) return;
  for (const Stream& stream : streams_) {
    if (stream.used && (stream.key.device == device || device < 0)) finish(stream.before);
  }
}

void PendingCopies::forget_storage(const void* storage) noexcept {
  Turn turn(*this);
  if (!turn.held()) return;
  for (unsigned k = 0; k < kCopies; ++k) {
    PendingCopy& copy = copies_[k];
    if (copy.host.storage == storage) {
      copy.host = {};
      copy.outside = nullptr;  // whoever read it has done so
      copy.closed = false;     // who gives memory back opens it
    }
    if (copy.device.storage == storage) copy.device = {};
    if (copy.host.storage == nullptr && copy.device.storage == nullptr) finish(bit(k));
  }
}

void PendingCopies::reset_after_fork() noexcept {
  lock_.clear();
  for (PendingCopy& copy : copies_) copy.closed = false;  // who closes pages opens them in the child
  attention.store(0, std::memory_order_relaxed);
}

template <class Collides>
std::optional<PendingCopy> PendingCopies::first_that(Collides collides) noexcept {
  const std::uint64_t now = pending();
  for (unsigned k = 0; k < kCopies; ++k) {
    if ((now & bit(k)) == 0 || !collides(copies_[k], bit(k))) continue;
    const PendingCopy found = copies_[k];
    finish(bit(k));
    return found;
  }
  return std::nullopt;
}

// Reading the source of a copy to the device does no harm.
std::optional<PendingCopy> PendingCopies::hit_by_host(const Extent& memory, bool writes) noexcept {
  Turn turn(*this);
  if (!turn.held()) return std::nullopt;
  return first_that(
      [&](const PendingCopy& copy, std::uint64_t) { return (copy.to_host || writes) && overlap(copy.host, memory); });
}

std::optional<PendingCopy> PendingCopies::hit_by_reader(const void* begin, std::uint64_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  Turn turn(*this);
  if (!turn.held()) return std::nullopt;
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
  Turn turn(*this);
  if (!turn.held()) return std::nullopt;
  const Stream* known = stream_of(stream);
  const std::uint64_t before = known != nullptr ? known->before : kAllCopies;
  return first_that([&](const PendingCopy& copy, std::uint64_t own) {
    return (before & own) == 0 && (!copy.to_host || writes) && overlap(copy.device, memory);
  });
}

std::optional<PendingCopy> PendingCopies::hit_outside(const Extent& memory) noexcept {
  Turn turn(*this);
  if (!turn.held()) return std::nullopt;
  const std::uint64_t now = pending();
  for (unsigned k = 0; k < kCopies; ++k) {
    const PendingCopy& copy = copies_[k];
    if ((now & bit(k)) != 0 && copy.to_host && copy.outside == nullptr && overlap(copy.host, memory)) return copy;
  }
  return std::nullopt;
}

void PendingCopies::remember_outside(const Extent& memory, trace::TrafficPayload* record) noexcept {
  Turn turn(*this);
  if (!turn.held()) return;
  for (unsigned k = 0; k < kCopies; ++k) {
    PendingCopy& copy = copies_[k];
    if ((pending() & bit(k)) != 0 && copy.to_host && overlap(copy.host, memory)) copy.outside = record;
  }
}

void PendingCopies::give_away(const void* host_begin) noexcept {
  const SpinGuard guard(lock_);
  if (guard.held() && host_begin != nullptr) given_place(host_begin) = host_begin;
}

std::optional<PendingCopy> PendingCopies::hit_by_touch(const void* address, bool writes) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Turn turn(*this);
  if (!turn.held()) return std::nullopt;
  return first_that([&](const PendingCopy& copy, std::uint64_t) {
    const auto begin = reinterpret_cast<std::uintptr_t>(copy.host_begin);
    if (!copy.closed || at < begin || !(copy.to_host || writes)) return false;
    Extent byte{copy.host.storage};
    byte.begin = at - begin;
    byte.end = byte.begin + 1;
    return overlap(copy.host, byte);
  });
}

std::optional<PendingCopy> PendingCopies::hit_by_copy(const Extent& memory, StreamKey stream, bool writes) noexcept {
  Turn turn(*this);
  if (!turn.held()) return std::nullopt;
  const Stream* known = stream_of(stream);
  const std::uint64_t before = known != nullptr ? known->before : kAllCopies;
  return first_that([&](const PendingCopy& copy, std::uint64_t own) {
    return (before & own) == 0 && (copy.to_host || writes) && overlap(copy.host, memory);
  });
}

}  // namespace devsan::hooks
