// What is known of a process's streams and events: their devices, which are being captured into a graph, and which wait
// for each other implicitly. All of it is learned from calls that pass by. The driver is never asked: to ask about a
// stream while it is being captured can invalidate the capture.
//
// Tables of fixed size, without a lock. What finds no room takes the place of another, which is then unknown.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace devsan::cuda {

// Handles, and a few bits about each: 0 where nothing is known. Any thread.
template <std::size_t kPlaces>
class HandleTable {
 public:
  std::uint16_t get(std::uint64_t handle) const noexcept {
    const std::size_t at = place_of(handle);
    return at == kNowhere ? 0 : static_cast<std::uint16_t>(words_[at].load(std::memory_order_acquire));
  }

  void set(std::uint64_t handle, std::uint16_t bits) noexcept {
    if (handle == 0 || handle >> kHandleBits != 0) return;
    std::size_t at = place_of(handle);
    for (std::size_t probe = 0; at == kNowhere && probe < kProbes; ++probe) {
      std::uint64_t empty = 0;
      const std::size_t place = (first_of(handle) + probe) % kPlaces;
      if (bits == 0) return;
      if (words_[place].compare_exchange_strong(empty, word_of(handle, bits), std::memory_order_acq_rel)) return;
      if (empty >> kBits == handle) at = place;
    }
    words_[at != kNowhere ? at : first_of(handle)].store(bits != 0 ? word_of(handle, bits) : 0,
                                                         std::memory_order_release);
  }

  // `change` is given the bits of each handle and returns what they are to be.
  template <class Change>
  void change_all(Change change) noexcept {
    for (auto& place : words_) {
      std::uint64_t word = place.load(std::memory_order_acquire);
      if (word == 0) continue;
      const std::uint16_t bits = change(static_cast<std::uint16_t>(word));
      // Whoever has stored something else meanwhile knows better.
      place.compare_exchange_strong(word, bits != 0 ? word_of(word >> kBits, bits) : 0, std::memory_order_acq_rel);
    }
  }

  void clear() noexcept {
    for (auto& place : words_) {
      if (place.load(std::memory_order_relaxed) != 0) place.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr unsigned kBits = 16;
  static constexpr unsigned kHandleBits = 48;
  static constexpr std::size_t kProbes = 16;
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  static std::uint64_t word_of(std::uint64_t handle, std::uint16_t bits) noexcept { return handle << kBits | bits; }
  static std::size_t first_of(std::uint64_t handle) noexcept {
    return static_cast<std::size_t>((handle >> 4) * 0x9E3779B97F4A7C15u >> 40) % kPlaces;
  }
  std::size_t place_of(std::uint64_t handle) const noexcept {
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const std::size_t place = (first_of(handle) + probe) % kPlaces;
      if (words_[place].load(std::memory_order_acquire) >> kBits == handle && handle != 0) return place;
    }
    return kNowhere;
  }

  std::array<std::atomic<std::uint64_t>, kPlaces> words_{};
};

// A stream as a call was given it: 0, 1 and 2 are default streams, and `per_thread` says what 0 means to the call.
struct StreamArgument {
  std::uint64_t handle = 0;
  bool per_thread = false;
};

// A stream by what it is in order with. `stream` is 0 for the default stream and for all that wait for it implicitly,
// or may: those that were not made with CU_STREAM_NON_BLOCKING. Work on one of these counts as in order with work on
// any other.
struct StreamName {
  int device = -1;  // -1: not known
  std::uint64_t stream = 0;
};

class Streams {
 public:
  // `device` is the current one where the call was made.
  void created(std::uint64_t stream, int device, bool non_blocking) noexcept;
  void destroyed(std::uint64_t stream) noexcept;
  // What the default stream of a device is called, or what `stream` was found to be when it was made. One that was not
  // seen then belongs to the device that was current at its first use.
  StreamName name_of(StreamArgument stream, int current_device) noexcept;
  int device_of(StreamArgument stream, int current_device) noexcept { return name_of(stream, current_device).device; }

  void recorded(std::uint64_t event, StreamArgument on, int device) noexcept;
  void waits_for(StreamArgument stream, std::uint64_t event) noexcept;
  void event_destroyed(std::uint64_t event) noexcept;
  int device_of_event(std::uint64_t event) const noexcept;  // -1: not known

  // Before a capture begins, so that nobody asks the driver anything from then on; `failed` takes it back.
  void capture_begins() noexcept;
  void capture_failed() noexcept { one_capture_less(); }
  void capture_began(StreamArgument stream) noexcept;
  // A call that ends it came back: the capture is over, also where it was invalid.
  void capture_ended(StreamArgument stream) noexcept;
  bool is_captured(StreamArgument stream) noexcept;
  bool any_captured() const noexcept { return captures_.load(std::memory_order_acquire) > 0; }

  // In a forked child.
  void clear() noexcept;

 private:
  static constexpr std::size_t kPlaces = 4096;
  static constexpr unsigned kMostCaptures = 127;  // at a time; what is more takes the number of an older one

  unsigned capture_of(StreamArgument stream) noexcept;
  void one_capture_less() noexcept;

  HandleTable<kPlaces> streams_;
  HandleTable<kPlaces> events_;
  std::array<std::atomic<std::uint64_t>, kMostCaptures + 1> origins_{};  // the stream that each capture began with
  std::atomic<unsigned> next_capture_{0};
  std::atomic<int> captures_{0};
};

extern Streams streams;

}  // namespace devsan::cuda
