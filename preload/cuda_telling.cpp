#include "preload/cuda_telling.h"

#include "preload/cuda_driver.h"

namespace devsan::cuda {
namespace {

constinit std::atomic<const std::atomic<const DeviceWatch*>*> g_watch{nullptr};
constinit thread_local CrossingCopy t_last_copy{};

const DeviceWatch* hooks_watch() noexcept {
  const auto* const place = g_watch.load(std::memory_order_acquire);
  return place != nullptr ? place->load(std::memory_order_acquire) : nullptr;
}

const void* event_of(const Observation& seen) noexcept {
  return reinterpret_cast<const void*>(seen.address);
}

std::int64_t id_of(StreamName name) noexcept {
  return static_cast<std::int64_t>(name.stream);
}

bool names_event(const Arguments& arguments) noexcept {
  return arguments.stream < 0 && arguments.address >= 0;
}

void note_copy(const Observation& seen, StreamName on) noexcept {
  if (seen.direction == CopyDirection::device_to_device || seen.direction == CopyDirection::host_to_host) return;
  ++t_last_copy.number;
  t_last_copy.device = on.device;
  t_last_copy.stream = id_of(on);
  t_last_copy.pending = (seen.flags & trace::kAsyncCall) != 0 &&
                        (seen.flags & (trace::kHostWaited | trace::kPageableCall)) == 0 && on.device != kNoDevice;
}

void tell_of_wait(const DeviceWatch& watch, const Observation& seen, StreamName on) noexcept {
  const Call& call = call_of(seen.call);
  const bool waited = call.kind != DeviceCallKind::query;
  if (names_event(call.arguments) && call.kind != DeviceCallKind::copy) {
    watch.host_saw_event(event_of(seen), waited);
  } else if (call.arguments.stream >= 0 || call.kind == DeviceCallKind::copy) {
    watch.host_saw_stream(on.device, id_of(on), waited);
  } else {
    watch.host_saw_device(seen.device);
  }
}

void tell(const DeviceWatch& watch, const Observation& seen, StreamName on) noexcept {
  switch (call_of(seen.call).kind) {
    case DeviceCallKind::record_event:
      watch.recorded(event_of(seen), on.device, id_of(on));
      break;
    case DeviceCallKind::stream_wait:
      watch.waits_for(on.device, id_of(on), event_of(seen));
      break;
    case DeviceCallKind::destroy_event:
      watch.destroyed(event_of(seen));
      break;
    case DeviceCallKind::destroy_stream:
      if (on.stream != 0) watch.stream_destroyed(on.device, id_of(on));
      break;
    case DeviceCallKind::tell_host:
      // What the host learns then it does not learn from a call: as if it knew at once.
      watch.host_saw_stream(on.device, id_of(on), true);
      break;
    case DeviceCallKind::release:
      // The driver waits for the device before it takes memory away.
      if ((seen.flags & trace::kAsyncCall) == 0) watch.host_saw_device(seen.device);
      break;
    default:
      if ((seen.flags & trace::kHostWaited) != 0) tell_of_wait(watch, seen, on);
      break;
  }
}

}  // namespace

void tell_through(const std::atomic<const DeviceWatch*>* watch) noexcept {
  g_watch.store(watch, std::memory_order_release);
}

void begin_recording() noexcept {
  if (const DeviceWatch* const watch = hooks_watch()) watch->begins();
}

void tell_hooks(const Observation& seen, StreamName on) noexcept {
  if (call_of(seen.call).kind == DeviceCallKind::copy) note_copy(seen, on);
  if (const DeviceWatch* const watch = hooks_watch()) tell(*watch, seen, on);
}

const DeviceCalls& device_calls() noexcept {
  static constexpr DeviceCalls kAnswers = {
      []() noexcept { return streams.any_captured(); },
      []() noexcept { return t_last_copy; },
      [](std::uint64_t handle, int device, std::int64_t* stream) noexcept {
        const StreamName name = streams.name_of({handle, false}, device);
        *stream = id_of(name);
        return name.device;
      },
      [](const void* address) noexcept {
        return placement_of(reinterpret_cast<std::uintptr_t>(address)) == Placement::pageable;
      },
      &capacity_of_device,
  };
  return kAnswers;
}

}  // namespace devsan::cuda
