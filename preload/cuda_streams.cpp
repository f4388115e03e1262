#include "preload/cuda_streams.h"

namespace devsan::cuda {

constinit Streams streams;

namespace {

constexpr std::uint64_t kLegacyStream = 1;     // CU_STREAM_LEGACY
constexpr std::uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

// Eight bits for the device, with one added, so that 0 is none; one for CU_STREAM_NON_BLOCKING; seven for the capture.
constexpr std::uint16_t kDeviceBits = 0xff;
constexpr std::uint16_t kNonBlocking = 0x100;
constexpr unsigned kCaptureShift = 9;
constexpr std::uint16_t kCaptureBits = 0xfe00;

std::uint16_t device_bits(int device) noexcept {
  return device >= 0 && device < kDeviceBits - 1 ? static_cast<std::uint16_t>(device + 1) : 0;
}
int device_in(std::uint16_t bits) noexcept {
  return (bits & kDeviceBits) - 1;
}
std::uint16_t with_device(std::uint16_t bits, int device) noexcept {
  return static_cast<std::uint16_t>((bits & ~kDeviceBits) | device_bits(device));
}
unsigned capture_in(std::uint16_t bits) noexcept {
  return static_cast<unsigned>(bits) >> kCaptureShift;
}
std::uint16_t with_capture(std::uint16_t bits, unsigned capture) noexcept {
  return static_cast<std::uint16_t>((bits & ~kCaptureBits) | capture << kCaptureShift);
}

thread_local constinit char t_default_stream = 0;

// By which a stream is looked up: the default stream of a thread is another one on each. The legacy stream, which
// cannot be captured and belongs to whichever device is current, has no key.
std::uint64_t key_of(StreamArgument stream) noexcept {
  if (stream.handle == kLegacyStream || (stream.handle == 0 && !stream.per_thread)) return 0;
  if (stream.handle != 0 && stream.handle != kPerThreadStream) return stream.handle;
  return reinterpret_cast<std::uintptr_t>(&t_default_stream);
}

bool is_default(StreamArgument stream) noexcept {
  return stream.handle == 0 || stream.handle == kLegacyStream || stream.handle == kPerThreadStream;
}

}  // namespace

void Streams::created(std::uint64_t stream, int device, bool non_blocking) noexcept {
  streams_.set(stream, static_cast<std::uint16_t>(device_bits(device) | (non_blocking ? kNonBlocking : 0)));
}

void Streams::destroyed(std::uint64_t stream) noexcept {
  streams_.set(stream, 0);
}

StreamName Streams::name_of(StreamArgument stream, int current_device) noexcept {
  if (is_default(stream)) return {current_device, 0};
  std::uint16_t bits = streams_.get(stream.handle);
  if (device_in(bits) < 0 && current_device >= 0) {
    bits = with_device(bits, current_device);
    streams_.set(stream.handle, bits);
  }
  return {device_in(bits), (bits & kNonBlocking) != 0 ? stream.handle : 0};
}

void Streams::recorded(std::uint64_t event, StreamArgument on, int device) noexcept {
  events_.set(event, with_capture(device_bits(device), capture_of(on)));
}

// A stream that waits for an event of a capture takes part in it from then on.
void Streams::waits_for(StreamArgument stream, std::uint64_t event) noexcept {
  const unsigned capture = capture_in(events_.get(event));
  const std::uint64_t key = key_of(stream);
  if (capture != 0 && key != 0) streams_.set(key, with_capture(streams_.get(key), capture));
}

void Streams::event_destroyed(std::uint64_t event) noexcept {
  events_.set(event, 0);
}

int Streams::device_of_event(std::uint64_t event) const noexcept {
  return device_in(events_.get(event));
}

void Streams::capture_begins() noexcept {
  captures_.fetch_add(1, std::memory_order_acq_rel);
}

void Streams::one_capture_less() noexcept {
  int now = captures_.load(std::memory_order_relaxed);
  while (now > 0 && !captures_.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) {
  }
}

void Streams::capture_began(StreamArgument stream) noexcept {
  const std::uint64_t key = key_of(stream);
  const unsigned capture = next_capture_.fetch_add(1, std::memory_order_relaxed) % kMostCaptures + 1;
  origins_[capture].store(key, std::memory_order_release);
  streams_.set(key, with_capture(streams_.get(key), capture));
}

// On another stream than the one it began with a capture cannot be ended.
void Streams::capture_ended(StreamArgument stream) noexcept {
  const unsigned capture = capture_of(stream);
  if (capture == 0 || origins_[capture].load(std::memory_order_acquire) != key_of(stream)) return;
  const auto leave = [capture](std::uint16_t bits) {
    return capture_in(bits) == capture ? with_capture(bits, 0) : bits;
  };
  streams_.change_all(leave);
  events_.change_all(leave);
  one_capture_less();
}

unsigned Streams::capture_of(StreamArgument stream) noexcept {
  return any_captured() ? capture_in(streams_.get(key_of(stream))) : 0;
}

bool Streams::is_captured(StreamArgument stream) noexcept {
  return capture_of(stream) != 0;
}

void Streams::clear() noexcept {
  streams_.clear();
  events_.clear();
  captures_.store(0, std::memory_order_release);
}

}  // namespace devsan::cuda
