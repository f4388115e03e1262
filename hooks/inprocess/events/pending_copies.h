// Asynchronous copies between the host and a device that may still be running, and what is known to come after them.
// A copy is over for the host when something waited for it: its stream, an event recorded behind it, its device.
// Another stream comes after it when it waits for such an event. Nothing is ever waited for here; this only keeps the
// books.
//
// Every copy has a bit. A stream and an event each hold the bits of the copies that come before them, so a wait is an
// OR and the end of a wait an AND. Of more than kCopies at once the oldest is forgotten, and so is everything that
// concerns a stream or event without room: what is forgotten counts as over, so that nothing is called a race that is
// none.
//
// Memory whose address PyTorch gave away is used by arrays of NumPy without an operator. While a copy of it is pending
// its pages are closed, where somebody offers that (PinnedPages): who touches them is seen.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "hooks/inprocess/common/spin_guard.h"
#include "hooks/inprocess/events/extent.h"
#include "preload/hooks_abi.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

struct StreamKey {
  int device = 0;  // -1: it is not known which stream
  std::int64_t stream = 0;
  bool known() const noexcept { return device >= 0; }
  bool operator==(const StreamKey&) const = default;
};

struct PendingCopy {
  Extent host;    // the host's side
  Extent device;  // and the device's
  bool to_host = false;
  bool foreign = false;  // torch or a library asked for it
  trace::SiteId site = trace::SiteId::none;
  std::uint64_t bytes = 0;
  const void* host_begin = nullptr;          // the address where the host's storage begins
  trace::TrafficPayload* outside = nullptr;  // its target was given to something outside PyTorch, as this record says
  bool closed = false;                       // its pages on the host
};

// One word that an operator looks at: 0 means that nothing needs attention. The low bits are the copies that are
// pending.
extern std::atomic<std::uint64_t> attention;
inline constexpr std::uint64_t kNumberTaken = std::uint64_t{1} << 63;  // see traffic.h
inline constexpr std::uint64_t kLookWanted = std::uint64_t{1} << 62;   // see moves.h

class PendingCopies {
 public:
  static constexpr unsigned kCopies = 62;

  // To be called once, before the first copy: who closes pages, for as long as the process lives.
  void close_pages_by(const PinnedPages* pages) noexcept { pages_ = pages; }
  bool closes_pages() const noexcept { return pages_ != nullptr; }

  // `copy` was queued on a stream.
  void queue(StreamKey on, const PendingCopy& copy) noexcept;

  // An event was recorded, or destroyed, or recorded anew.
  void record_event(const void* event, StreamKey on) noexcept;
  void forget_event(const void* event) noexcept;
  // What is queued on the stream from now on waits for the event.
  void wait_event(StreamKey stream, const void* event) noexcept;
  void forget_stream(StreamKey stream) noexcept;

  // The host waited, or learnt without waiting that there is nothing to wait for.
  void host_saw_event(const void* event) noexcept;
  void host_saw_stream(StreamKey stream) noexcept;
  void host_saw_device(int device) noexcept;

  // A storage died: nobody can use that side of its copies any more.
  void forget_storage(const void* storage) noexcept;
  // In a fork child nothing is pending.
  void reset_after_fork() noexcept;

  // What collides with a pending copy. It is told of once: the copy then counts as over.
  //
  // The host reads, or writes, memory of the host.
  std::optional<PendingCopy> hit_by_host(const Extent& memory, bool writes) noexcept;
  // The host reads the bytes from this address on, of which nobody knows whose they are.
  std::optional<PendingCopy> hit_by_reader(const void* begin, std::uint64_t bytes) noexcept;
  // Something outside PyTorch (NumPy) got hold of memory of the host, and may read it now or later. This one stays
  // pending: `remember_outside` has the record told when somebody waits for it after all.
  std::optional<PendingCopy> hit_outside(const Extent& memory) noexcept;
  void remember_outside(const Extent& memory, trace::TrafficPayload* record) noexcept;
  // The memory of the host that begins there may be used without an operator: the pages that a later copy is at work on
  // are closed. Those of a copy that is pending are not: what got the memory may be about to hand it to a system call,
  // which would fail.
  void give_away(const void* host_begin) noexcept;
  // Closed pages were touched at an address, and are open again. Safe in the signal handler of that.
  std::optional<PendingCopy> hit_by_touch(const void* address, bool writes) noexcept;
  // An operator on `stream` uses memory of a device and does not come after the copy.
  std::optional<PendingCopy> hit_by_stream(const Extent& memory, StreamKey stream, bool writes) noexcept;
  // Nor does a copy on `stream` that reads, or writes, memory of the host.
  std::optional<PendingCopy> hit_by_copy(const Extent& memory, StreamKey stream, bool writes) noexcept;

 private:
  static constexpr std::size_t kStreams = 64;
  static constexpr std::size_t kEvents = 1024;
  static constexpr std::size_t kGiven = 256;

  struct Stream {
    StreamKey key;
    std::uint64_t before = 0;  // copies that come before what is queued next
    bool used = false;
  };
  struct Event {
    const void* key = nullptr;
    std::uint64_t before = 0;
  };

  class Turn;

  const void*& given_place(const void* host_begin) noexcept;
  Stream* stream_of(StreamKey key) noexcept;
  Event* event_of(const void* event, bool make) noexcept;
  void finish(std::uint64_t copies) noexcept;
  void close_if_given(PendingCopy& copy, Turn& turn) noexcept;
  template <class Collides>
  std::optional<PendingCopy> first_that(Collides collides) noexcept;

  std::array<PendingCopy, kCopies> copies_{};
  std::array<Stream, kStreams> streams_{};
  std::array<Event, kEvents> events_{};
  // Where memory begins that was given away. A later one may take the place: then less is seen.
  std::array<const void*, kGiven> given_{};
  const PinnedPages* pages_ = nullptr;
  // Where memory begins whose pages are closed for copies that are over since the lock was taken.
  std::array<const void*, kCopies> over_{};
  unsigned over_count_ = 0;
  unsigned next_ = 0;
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
};

extern PendingCopies pending_copies;

}  // namespace devsan::hooks
