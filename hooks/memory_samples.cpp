#include "hooks/memory_samples.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fcntl.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "hooks/runtime.h"
#include "trace/clock.h"
#include "trace/memory_series.h"

// Before that version the allocators of devices have no interface in common.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
#define DEVSAN_DEVICE_ALLOCATORS 1
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace devsan::hooks {

namespace {

constexpr std::int64_t kInterval = 20'000'000;  // nanoseconds from one look to the next
constexpr std::size_t kDevices = 64;

// Of the process itself: what is resident of it, less what is of files or shared. 0 where it cannot be read.
std::uint64_t own_bytes() noexcept {
  char text[128];
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t length = ::read(fd, text, sizeof text);
  ::close(fd);
  std::array<std::uint64_t, 3> pages{};  // size, resident, shared
  const char* at = text;
  const char* const end = text + (length > 0 ? length : 0);
  for (std::uint64_t& number : pages) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || next == end) return 0;
    at = next + 1;
  }
  return pages[1] > pages[2] ? (pages[1] - pages[2]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

// The curves of one process; a forked child has its own.
struct Curves {
  std::atomic<std::uint64_t> epoch{0};
  trace::MemorySeriesPayload* host = nullptr;
  std::array<trace::MemorySeriesPayload*, kDevices> devices{};
};

constinit Curves curves{};
constinit std::atomic<std::int64_t> next_look{0};
constinit std::atomic<bool> looking{false};

void look_at_host(trace::MemorySample sample) noexcept {
  sample.used = own_bytes();
  if (sample.used == 0) return;
  sample.held = runtime.host->pinned_bytes->load(std::memory_order_relaxed);
  if (curves.host == nullptr)
    curves.host = runtime.recorder->add_memory_series(trace::SeriesKind::host, trace::DeviceSlot::none);
  trace::add_sample(curves.host, sample);
}

#ifdef DEVSAN_DEVICE_ALLOCATORS
void look_at_device(c10::DeviceAllocator& allocator, c10::DeviceIndex index, trace::MemorySample sample) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const c10::CachingDeviceAllocator::DeviceStats stats = allocator.getDeviceStats(index);
  sample.used = static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current);
  sample.held = static_cast<std::uint64_t>(stats.reserved_bytes[kAll].current);
  trace::MemorySeriesPayload*& curve = curves.devices[static_cast<std::size_t>(index)];
  if (curve == nullptr) {
    if (stats.reserved_bytes[kAll].peak == 0) return;  // a device that was never used
    const c10::Device device(c10::DeviceType::CUDA, index);
    curve = runtime.recorder->add_memory_series(trace::SeriesKind::device, device_slot(device_key(device)));
  }
  trace::add_sample(curve, sample);
}

// In this order: without a guard to ask for the allocator is an error, and before the allocator is in use to count the
// devices would start the driver, after which a forked child could not use it.
void look_at_devices(const trace::MemorySample& sample) {
  const auto* guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::DeviceType::CUDA)].load();
  if (guard == nullptr) return;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::DeviceType::CUDA));
  if (allocator == nullptr || !allocator->initialized()) return;
  const int count = std::min<int>(guard->deviceCount(), kDevices);
  for (int i = 0; i < count; ++i) look_at_device(*allocator, static_cast<c10::DeviceIndex>(i), sample);
}
#else
void look_at_devices(const trace::MemorySample&) {}
#endif

void look(std::uint32_t step) noexcept {
  const std::uint64_t epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  if (curves.epoch.exchange(epoch) != epoch) {
    curves.host = nullptr;
    curves.devices.fill(nullptr);
  }
  trace::MemorySample sample{};
  sample.time_ns = trace::wall_clock_ns();
  sample.step = step;
  look_at_host(sample);
  try {
    look_at_devices(sample);
  } catch (...) {  // no allocator of CUDA, or one that cannot be asked
  }
}

}  // namespace

void sample_memory(std::uint32_t step) noexcept {
  const std::int64_t now = trace::clock_ns(CLOCK_MONOTONIC);
  if (now < next_look.load(std::memory_order_relaxed)) return;
  bool idle = false;
  // A child of a fork that came while its parent was looking never looks itself.
  if (!looking.compare_exchange_strong(idle, true, std::memory_order_acquire)) return;
  next_look.store(now + kInterval, std::memory_order_relaxed);
  const int error = errno;
  look(step);
  errno = error;
  looking.store(false, std::memory_order_release);
}

}  // namespace devsan::hooks
