// Operators finish before they return, so every stream is idle whenever it is asked, but for copies that were made
// late. Streams and events still have identities, devices and times, because programs compare and subtract them; and
// the hooks are told what waits for what, because a missing wait shows nowhere else.
#include "sim/device_guard.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <chrono>

#include "sim/capture.h"
#include "sim/devices.h"
#include "sim/kernel_words.h"
#include "sim/late_copies.h"

namespace devsan::sim {
namespace {

// As in PyTorch's CUDA code: 32 streams of each priority and device, given out in turn. Id 0 is the default stream.
constexpr c10::StreamId kStreamsPerPool = 32;
constexpr c10::StreamId kFirstNormal = 1;
constexpr c10::StreamId kFirstHighPriority = kFirstNormal + kStreamsPerPool;

struct StreamPools {
  std::array<std::atomic<c10::StreamId>, kMaxDevices> normal{};
  std::array<std::atomic<c10::StreamId>, kMaxDevices> high_priority{};
};

StreamPools g_pools;
thread_local std::array<c10::StreamId, kMaxDevices> t_current_streams{};

struct RecordedEvent {
  c10::DeviceIndex device;
  std::chrono::steady_clock::time_point time;
};

std::atomic<const DeviceWatch*>* g_device_watch = nullptr;

const DeviceWatch* watch() {
  return g_device_watch->load(std::memory_order_acquire);
}

class SimulatedGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kSimulatedType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device previous = getDevice();
    setDevice(device);
    return previous;
  }
  c10::Device getDevice() const override { return {kSimulatedType, current_device()}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kSimulatedType, "expected a CUDA device, got ", device);
    check_device(device.index());
    set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count()) set_current_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = ~std::uint64_t{0};
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override {
    const c10::Device on = known(device);
    return c10::Stream(c10::Stream::UNSAFE, on, t_current_streams[static_cast<std::size_t>(on.index())]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, known(device));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    const c10::Device on = known(device);
    auto& pool = high_priority ? g_pools.high_priority : g_pools.normal;
    const c10::StreamId turn = pool[static_cast<std::size_t>(on.index())].fetch_add(1) % kStreamsPerPool;
    return c10::Stream(c10::Stream::UNSAFE, on, (high_priority ? kFirstHighPriority : kFirstNormal) + turn);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return getStreamFromGlobalPool(device, priority < 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream previous = getStream(stream.device());
    t_current_streams[static_cast<std::size_t>(stream.device_index())] = stream.id();
    return previous;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    if (stream.id() == 0) return nullptr;  // the legacy default stream, as in CUDA
    constexpr std::uintptr_t kBase = 0x5d00000000;
    return reinterpret_cast<void*>(kBase + static_cast<std::uintptr_t>(stream.device_index()) * 0x10000 +
                                   static_cast<std::uintptr_t>(stream.id()) * 0x10);
  }
  bool queryStream(const c10::Stream& stream) const override {
    synchronizeStream(stream);
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    check_not_capturing();
    check_context();
    late_copies_saw_stream(stream);
    if (const DeviceWatch* told = watch()) told->host_saw_stream(stream.device_index(), stream.id(), true);
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    check_not_capturing();
    tell_host_saw_device(device);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ", static_cast<int>(device),
                " does not match recording stream's device index ", static_cast<int>(stream.device_index()), ".");
    if (*event == nullptr) *event = new RecordedEvent();
    *static_cast<RecordedEvent*>(*event) = {stream.device_index(), std::chrono::steady_clock::now()};
    late_copies_record(*event, stream);
    if (const DeviceWatch* told = watch()) told->recorded(*event, stream.device_index(), stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    late_copies_block(event, stream);
    const DeviceWatch* told = watch();
    if (told != nullptr && event != nullptr) told->waits_for(stream.device_index(), stream.id(), event);
  }
  bool queryEvent(void* event) const override {
    synchronizeEvent(event);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    check_not_capturing();
    check_context();
    late_copies_saw_event(event);
    const DeviceWatch* told = watch();
    if (told != nullptr && event != nullptr) told->host_saw_event(event, true);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    late_copies_forget(event);
    const DeviceWatch* told = watch();
    if (told != nullptr && event != nullptr) told->destroyed(event);
    delete static_cast<RecordedEvent*>(event);
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    TORCH_CHECK(first != nullptr && second != nullptr, "Both events must be recorded before calculating elapsed time.");
    const auto& from = *static_cast<RecordedEvent*>(first);
    const auto& to = *static_cast<RecordedEvent*>(second);
    return std::chrono::duration<double, std::milli>(to.time - from.time).count();
  }

 private:
  static c10::Device known(c10::Device device) {
    return resolve_device(device.has_index() ? device : c10::Device(kSimulatedType, current_device()));
  }
};

}  // namespace

void tell_work_ended(const void* work) {
  if (const DeviceWatch* told = watch()) told->work_ended(work, false);
}

void tell_host_saw_device(c10::DeviceIndex device) {
  check_context();
  late_copies_saw_device(device);
  if (const DeviceWatch* told = watch()) told->host_saw_device(device);
}

void tell_fails(const char* message) {
  if (const DeviceWatch* told = watch()) told->fails(message);
}

void register_device_guard(std::atomic<const DeviceWatch*>* device_watch) {
  g_device_watch = device_watch;
  c10::impl::registerDeviceGuard(kSimulatedType, new SimulatedGuard());
}

}  // namespace devsan::sim
