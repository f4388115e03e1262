#include "preload/cuda_reading.h"

#include <cstring>

#include "preload/cuda_telling.h"
#include "trace/clock.h"

namespace devsan::cuda {
namespace {

constexpr std::uint32_t kNotReady = 600;     // CUDA_ERROR_NOT_READY, cudaErrorNotReady: the answer of a query
constexpr std::uint32_t kWrongThread = 908;  // CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: the capture goes on
constexpr std::uint64_t kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr int kWordsInRegisters = 6;

std::int64_t monotonic_ns() noexcept {
  return trace::clock_ns(CLOCK_MONOTONIC);
}

// Where the words of the structs lie that describe a copy; tests/unit/preload/cuda_calls_test.cpp compares them with
// CUDA's.
struct StructCopy {
  std::size_t source_type, source_host, source_device;
  std::size_t target_type, target_host, target_device;
  std::size_t width, height, depth;  // depth 0: it has none
};
constexpr StructCopy kCopy2d{2, 3, 4, 9, 10, 11, 14, 15, 0};
constexpr StructCopy kCopy3d{4, 5, 6, 15, 16, 17, 22, 23, 24};

enum MemoryType : std::uint32_t { kHostType = 1, kDeviceType = 2, kArrayType = 3, kUnifiedType = 4 };

// Of a CUmemAllocationProp: type and requested handles, and then where the memory is to be.
struct PhysicalProperties {
  std::uint32_t type;
  std::uint32_t handles;
  std::uint32_t location_type;
  std::int32_t location;
};
constexpr std::uint32_t kOnDevice = 1;

bool is_host(Placement placement) noexcept {
  return placement == Placement::pageable || placement == Placement::pinned;
}

CopyDirection direction_between(bool source_on_host, bool target_on_host) noexcept {
  if (source_on_host) return target_on_host ? CopyDirection::host_to_host : CopyDirection::host_to_device;
  return target_on_host ? CopyDirection::device_to_host : CopyDirection::device_to_device;
}

CopyDirection direction_told(std::uint32_t how) noexcept {
  switch (how) {
    case 0:
      return CopyDirection::host_to_host;
    case 1:
      return CopyDirection::host_to_device;
    case 2:
      return CopyDirection::device_to_host;
    case 3:
      return CopyDirection::device_to_device;
    default:
      return CopyDirection::none;  // by the addresses
  }
}

}  // namespace

Watched::Watched(Journal& journal, CallId id, const std::uint64_t* words, const std::uint64_t* stack) noexcept
    : journal_(journal), call_(call_of(id)), arguments_(call_.arguments), words_(words), stack_(stack) {
  seen_.call = id;
  seen_.address = word(arguments_.address);
  seen_.stream = word(arguments_.stream);
  seen_.space = arguments_.space;
  seen_.direction = arguments_.direction;
  if (arguments_.async) seen_.flags = trace::kAsyncCall;
  if (arguments_.shape == Shape::words) seen_.bytes = word(arguments_.bytes);
  if (call_.kind == DeviceCallKind::release) take_out_of_ledger();
  if (call_.kind == DeviceCallKind::wait || call_.kind == DeviceCallKind::copy) begun_ns_ = monotonic_ns();
  if (call_.kind == DeviceCallKind::begin_capture) streams.capture_begins();
  // Once it is gone, another thread may be given the same handle.
  if (call_.kind == DeviceCallKind::destroy_stream) {
    on_ = streams.name_of(stream(), kNoDevice);
    streams.destroyed(seen_.stream);
  }
  if (call_.kind == DeviceCallKind::destroy_event) {
    on_ = {streams.device_of_event(seen_.address), 0};
    streams.event_destroyed(seen_.address);
  }
}

std::uint64_t Watched::word(int index) const noexcept {
  if (index < 0) return 0;
  return index < kWordsInRegisters ? words_[index] : stack_[index - kWordsInRegisters];
}

std::uint64_t Watched::stored(int index) const noexcept {
  std::uint64_t value = 0;
  const auto* const place = reinterpret_cast<const void*>(word(index));
  if (index >= 0 && place != nullptr) std::memcpy(&value, place, sizeof(value));
  return value;
}

StreamArgument Watched::stream() const noexcept {
  return {seen_.stream, call_.mode == StreamMode::ptds || call_.mode == StreamMode::ptsz};
}

// Before the call: once it has freed an address, another thread may be given it.
void Watched::take_out_of_ledger() noexcept {
  if (seen_.address == 0) return;
  taken_ = arguments_.opaque ? journal_.ledger().release(seen_.address) : journal_.ledger().take(seen_.address);
  if (!taken_) return;
  seen_.bytes = taken_->bytes;
  seen_.space = taken_->space;
}

void Watched::put_back_into_ledger() noexcept {
  if (!taken_) return;
  if (arguments_.opaque) {
    journal_.ledger().add_physical(seen_.address, *taken_);
  } else {
    journal_.ledger().add(seen_.address, *taken_);
  }
}

void Watched::finish(std::uint32_t result) noexcept {
  seen_.result = result;
  const bool not_ready = call_.kind == DeviceCallKind::query && result == kNotReady;
  seen_.failed = result != 0 && !not_ready;
  now_ = current_after(not_ready ? 0 : result);
  seen_.context = now_.context;
  find_stream();
  if (!seen_.failed) {
    read_result();
    keep_streams();
    if (takes_part_in_capture() && !not_ready && streams.is_captured(stream())) seen_.flags |= trace::kCapturedCall;
    if (call_.kind == DeviceCallKind::copy) read_copy();
  }
  keep_captures();
  seen_.device = find_device();
  const bool done = !seen_.failed && (seen_.flags & trace::kCapturedCall) == 0;
  if (done && (call_.kind == DeviceCallKind::wait || (call_.kind == DeviceCallKind::query && !not_ready))) {
    seen_.flags |= trace::kHostWaited;
  }
  if (!done) seen_.flags &= static_cast<std::uint8_t>(~trace::kHostWaited);
  if (done && begun_ns_ != 0 && (seen_.flags & trace::kHostWaited) != 0) {
    seen_.wait_ns = static_cast<std::uint64_t>(monotonic_ns() - begun_ns_);
  }
  if (done) {
    keep_books();
  } else {
    put_back_into_ledger();
  }
  journal_.note(seen_);
  if (done) tell_hooks(seen_, on_);
}

bool Watched::takes_part_in_capture() const noexcept {
  return arguments_.stream >= 0 && call_.kind != DeviceCallKind::destroy_stream &&
         call_.kind != DeviceCallKind::begin_capture && call_.kind != DeviceCallKind::end_capture;
}

// What failed may have been given a stream that is none.
void Watched::find_stream() noexcept {
  if (call_.kind == DeviceCallKind::destroy_stream || call_.kind == DeviceCallKind::destroy_event) return;
  const bool named = arguments_.stream >= 0 && !seen_.failed;
  on_ = named ? streams.name_of(stream(), now_.device) : StreamName{now_.device, 0};
}

// Of a call that succeeded.
void Watched::keep_streams() noexcept {
  switch (call_.kind) {
    case DeviceCallKind::create_stream:
      streams.created(seen_.address, now_.device,
                      arguments_.flags >= 0 && (word(arguments_.flags) & kNonBlocking) != 0);
      break;
    case DeviceCallKind::record_event:
      streams.recorded(seen_.address, stream(), on_.device);
      break;
    case DeviceCallKind::stream_wait:
      streams.waits_for(stream(), seen_.address);
      break;
    default:
      break;
  }
}

void Watched::keep_captures() noexcept {
  if (call_.kind == DeviceCallKind::begin_capture) {
    if (seen_.failed) {
      streams.capture_failed();
    } else {
      streams.capture_began(stream());
    }
  }
  // An invalid capture is over as well.
  if (call_.kind == DeviceCallKind::end_capture && seen_.result != kWrongThread) streams.capture_ended(stream());
}

void Watched::read_result() noexcept {
  if (arguments_.out >= 0) seen_.address = stored(arguments_.out);
  if (arguments_.shape != Shape::words) seen_.bytes = bytes_of_result();
  find_space();
}

std::uint64_t Watched::bytes_of_result() const noexcept {
  switch (arguments_.shape) {
    case Shape::pitched:
      return stored(arguments_.pitch) * word(arguments_.rows);
    case Shape::rectangle:
      return word(arguments_.bytes) * word(arguments_.rows);
    case Shape::words:
    case Shape::copy_2d:
    case Shape::copy_3d:
    case Shape::entry_point:
      break;
  }
  return 0;
}

// Physical memory can be the host's.
void Watched::find_space() noexcept {
  if (arguments_.properties < 0) return;
  PhysicalProperties properties;
  std::memcpy(&properties, reinterpret_cast<const void*>(word(arguments_.properties)), sizeof(properties));
  if (properties.location_type == kOnDevice) {
    seen_.device = properties.location;
  } else {
    seen_.space = MemorySpace::pinned;
  }
}

void Watched::read_struct_copy() noexcept {
  const StructCopy& at = arguments_.shape == Shape::copy_2d ? kCopy2d : kCopy3d;
  const auto* const copy = reinterpret_cast<const std::uint64_t*>(word(arguments_.address));
  seen_.bytes = copy[at.width] * copy[at.height] * (at.depth != 0 ? copy[at.depth] : 1);
  const auto type_of = [&](std::size_t type) { return static_cast<std::uint32_t>(copy[type]); };
  const auto on_host = [&](std::size_t type, std::size_t device) {
    return type_of(type) == kHostType || (type_of(type) == kUnifiedType && is_host(placement_of(copy[device])));
  };
  const auto address_of = [&](std::size_t type, std::size_t host, std::size_t device) {
    return copy[type_of(type) == kHostType ? host : device];
  };
  const bool from_host = on_host(at.source_type, at.source_device);
  const bool to_host = on_host(at.target_type, at.target_device);
  seen_.direction = direction_between(from_host, to_host);
  seen_.address =
      type_of(at.target_type) == kArrayType ? 0 : address_of(at.target_type, at.target_host, at.target_device);
  const std::uint64_t source = address_of(at.source_type, at.source_host, at.source_device);
  note_pageable(from_host, source, to_host);
}

void Watched::note_pageable(bool from_host, std::uint64_t source, bool to_host) noexcept {
  const bool pageable = (from_host && placement_of(source) == Placement::pageable) ||
                        (to_host && placement_of(seen_.address) == Placement::pageable);
  if (pageable) seen_.flags |= trace::kPageableCall;
}

// Of a copy that leaves it to the addresses.
void Watched::read_direction(std::uint64_t source) noexcept {
  const Placement from = placement_of(source);
  const Placement to = placement_of(seen_.address);
  if (from == Placement::unknown) return;
  seen_.direction = direction_between(is_host(from), is_host(to));
  if (from == Placement::pageable || to == Placement::pageable) seen_.flags |= trace::kPageableCall;
}

void Watched::read_copy() noexcept {
  if (arguments_.shape == Shape::copy_2d || arguments_.shape == Shape::copy_3d) {
    read_struct_copy();
  } else {
    const std::uint64_t source = word(arguments_.source);
    if (arguments_.how >= 0) seen_.direction = direction_told(static_cast<std::uint32_t>(word(arguments_.how)));
    if (seen_.direction == CopyDirection::none) {
      read_direction(source);
    } else {
      const bool within_host = seen_.direction == CopyDirection::host_to_host;
      note_pageable(within_host || seen_.direction == CopyDirection::host_to_device, source,
                    within_host || seen_.direction == CopyDirection::device_to_host);
    }
  }
  // Within a device nobody waits; asynchronously only a copy to memory that the device cannot reach has to be waited
  // for.
  const bool crosses = seen_.direction != CopyDirection::none && seen_.direction != CopyDirection::device_to_device;
  const bool to_pageable =
      seen_.direction == CopyDirection::device_to_host && (seen_.flags & trace::kPageableCall) != 0;
  if (arguments_.async ? to_pageable : crosses) seen_.flags |= trace::kHostWaited;
}

int Watched::find_device() const noexcept {
  if (seen_.device != kNoDevice) return seen_.device;
  if (taken_) return taken_->device;
  const bool of_host = seen_.space == MemorySpace::pinned || seen_.space == MemorySpace::registered;
  return of_host || call_.kind == DeviceCallKind::release ? kNoDevice : device_of_call();
}

int Watched::device_of_call() const noexcept {
  const bool captured = (seen_.flags & trace::kCapturedCall) != 0;
  const bool gives_memory = arguments_.out >= 0 && !arguments_.opaque && !seen_.failed && !captured;
  switch (call_.kind) {
    case DeviceCallKind::map:
      return journal_.ledger().device_of(word(arguments_.handle));
    case DeviceCallKind::unmap:
    case DeviceCallKind::set_access:
    case DeviceCallKind::retain:
    case DeviceCallKind::close_shared:
      return kNoDevice;
    case DeviceCallKind::share:
    case DeviceCallKind::open_shared:
      return arguments_.opaque || seen_.failed ? kNoDevice : device_of_memory(seen_.address);
    case DeviceCallKind::allocate:
      // A pool may be another device's than the stream.
      if (gives_memory && arguments_.async) {
        if (const int device = device_of_memory(seen_.address); device != kNoDevice) return device;
      }
      break;
    case DeviceCallKind::wait:
    case DeviceCallKind::query:
      if (arguments_.context >= 0 && word(arguments_.context) != seen_.context) return kNoDevice;
      if (arguments_.stream < 0 && arguments_.address >= 0) return streams.device_of_event(seen_.address);
      break;
    default:
      break;
  }
  return on_.device;
}

void Watched::keep_books() noexcept {
  Ledger& ledger = journal_.ledger();
  const Block block{seen_.bytes, seen_.device, seen_.space};
  switch (call_.kind) {
    case DeviceCallKind::allocate:
      if (seen_.address == 0) break;
      journal_.allocated(
          block, arguments_.opaque ? ledger.add_physical(seen_.address, block) : ledger.add(seen_.address, block));
      break;
    case DeviceCallKind::release:
      if (taken_) journal_.released(*taken_);
      break;
    case DeviceCallKind::map:
      ledger.map(seen_.address, seen_.bytes, word(arguments_.handle));
      break;
    case DeviceCallKind::unmap:
      unmap();
      break;
    case DeviceCallKind::retain:
      ledger.retain(seen_.address);
      break;
    default:
      break;
  }
}

// The driver takes away whole mappings only, of which there may be several, one behind the other.
void Watched::unmap() noexcept {
  std::uint64_t at = seen_.address;
  while (at < seen_.address + seen_.bytes) {
    std::optional<Block> ended;
    const std::uint64_t bytes = journal_.ledger().unmap(at, &ended);
    if (bytes == 0) break;
    if (ended) journal_.released(*ended);
    at += bytes;
  }
}

}  // namespace devsan::cuda
