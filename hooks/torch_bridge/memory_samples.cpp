#include "hooks/inprocess/bridge/memory_samples.h"

#include <ATen/StorageUtils.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/sysinfo.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/events/site_memory.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/torch_bridge/tensor_fields.h"
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

// As own_bytes().
std::uint64_t read_own_bytes() noexcept {
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

// How much there is of a device's memory, or of the host's, for who wants to know how long it will do.
void note_capacity(std::string_view device, std::uint64_t bytes) noexcept {
  char key[64];
  char value[24];
  const int length = std::snprintf(key, sizeof key, "memory.%.*s", static_cast<int>(device.size()), device.data());
  const auto [end, error] = std::to_chars(value, value + sizeof value, bytes);
  if (bytes == 0 || length <= 0 || error != std::errc{}) return;
  runtime.recorder->add_run_info({key, static_cast<std::size_t>(length)}, {value, end});
}

// The machine's memory, or what the control group of a container may have of it.
std::uint64_t host_capacity() noexcept {
  struct sysinfo machine {};
  if (::sysinfo(&machine) != 0) return 0;
  std::uint64_t bytes = std::uint64_t{machine.totalram} * machine.mem_unit;
  char text[32];
  const int fd = ::open("/sys/fs/cgroup/memory.max", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return bytes;
  const ssize_t length = ::read(fd, text, sizeof text);
  ::close(fd);
  std::uint64_t limit = 0;
  if (length > 0 && std::from_chars(text, text + length, limit).ec == std::errc{}) bytes = std::min(bytes, limit);
  return bytes;
}

// The curves of one process; a forked child has its own.
struct Curves {
  std::atomic<std::uint64_t> epoch{0};
  trace::SeriesClock clock = trace::SeriesClock::iterations;
  trace::MemorySeriesPayload* host = nullptr;
  std::array<trace::MemorySeriesPayload*, kDevices> devices{};
};

constinit Curves curves{};
constinit std::atomic<std::int64_t> next_look{0};
constinit std::atomic<bool> looking{false};

// What the process takes of it.
std::uint64_t look_at_host(trace::MemorySample sample) noexcept {
  sample.used = own_bytes();
  if (sample.used == 0) return 0;
  sample.held = runtime.host->pinned_bytes->load(std::memory_order_relaxed);
  if (curves.host == nullptr) {
    note_capacity("host", host_capacity());
    if (devices_are_simulated()) runtime.recorder->add_run_info("simulated", "devices");
    curves.host = runtime.recorder->add_memory_series(trace::SeriesKind::host, trace::DeviceSlot::none, curves.clock);
  }
  trace::add_sample(curves.host, sample);
  return sample.used;
}

#ifdef DEVSAN_DEVICE_ALLOCATORS
// Some releases of torch have no such question, and some allocators no answer.
template <class Allocator>
std::uint64_t capacity_of(Allocator& allocator, c10::DeviceIndex index) noexcept {
  // PyTorch would make the device the current one to ask.
  if (!devices_are_simulated()) return runtime.host->device_calls->capacity(index);
  if constexpr (requires { allocator.getMemoryInfo(index); }) {
    try {
      return allocator.getMemoryInfo(index).second;
    } catch (...) {
    }
  }
  return 0;
}

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

DeviceBytes bytes_in(const c10::CachingDeviceAllocator::DeviceStats& stats) noexcept {
  return {static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current),
          static_cast<std::uint64_t>(stats.reserved_bytes[kAll].current)};
}

void look_at_device(c10::DeviceAllocator& allocator, c10::DeviceIndex index, trace::MemorySample sample) {
  const c10::CachingDeviceAllocator::DeviceStats stats = allocator.getDeviceStats(index);
  const DeviceBytes bytes = bytes_in(stats);
  sample.used = bytes.allocated;
  sample.held = bytes.reserved;
  trace::MemorySeriesPayload*& curve = curves.devices[static_cast<std::size_t>(index)];
  if (curve == nullptr) {
    if (stats.reserved_bytes[kAll].peak == 0) return;  // a device that was never used
    const c10::Device device(c10::DeviceType::CUDA, index);
    const trace::DeviceSlot slot = device_slot(device_key(device));
    curve = runtime.recorder->add_memory_series(trace::SeriesKind::device, slot, curves.clock);
    note_capacity(runtime.recorder->string(runtime.recorder->device_name(slot)), capacity_of(allocator, index));
  }
  trace::add_sample(curve, sample);
}

// PyTorch's allocator of a type of devices, once it is in use. In this order: without a guard to ask for the allocator
// is an error, and before the allocator is in use to count the devices would start the driver, after which a forked
// child could not use it.
c10::DeviceAllocator* allocator_in_use(c10::DeviceType type) {
  const auto* guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(type)].load();
  if (guard == nullptr) return nullptr;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(type));
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

// None while CUDA captures a graph: some allocators ask the driver.
c10::DeviceAllocator* allocator_to_ask(c10::DeviceType type) {
  return runtime.host->device_calls->captures() ? nullptr : allocator_in_use(type);
}

// A child of a process that has used its devices cannot use them, and what its allocator says is its parent's; another
// thread may have held that allocator's lock at the fork.
constinit std::atomic<bool> devices_are_inherited{false};

void note_fork() noexcept {
  try {
    if (allocator_in_use(c10::DeviceType::CUDA) != nullptr)
      devices_are_inherited.store(true, std::memory_order_relaxed);
  } catch (...) {  // no allocator of CUDA
  }
}

template <class Look>
void for_each_device(Look look) {
  if (devices_are_inherited.load(std::memory_order_relaxed)) return;
  c10::DeviceAllocator* const allocator = allocator_to_ask(c10::DeviceType::CUDA);
  if (allocator == nullptr) return;
  const auto* guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::DeviceType::CUDA)].load();
  const int count = std::min<int>(guard->deviceCount(), kDevices);
  for (int i = 0; i < count; ++i) look(*allocator, static_cast<c10::DeviceIndex>(i));
}

void look_at_devices(const trace::MemorySample& sample) {
  for_each_device(
      [&](c10::DeviceAllocator& allocator, c10::DeviceIndex index) { look_at_device(allocator, index, sample); });
}
#else
void note_fork() noexcept {}
void look_at_devices(const trace::MemorySample&) {}
#endif

std::uint64_t look_at_memory(const trace::MemorySample& sample, trace::SeriesClock clock) noexcept {
  const std::uint64_t epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  if (curves.epoch.exchange(epoch) != epoch || curves.clock != clock) {
    curves.clock = clock;
    curves.host = nullptr;
    curves.devices.fill(nullptr);
  }
  const std::uint64_t host = look_at_host(sample);
  try {
    look_at_devices(sample);
  } catch (...) {  // no allocator of CUDA, or one that cannot be asked
  }
  return host;
}

// Of a step that comes too soon for more, what its tensors keep is looked at alone; of rounds always: those of one line
// and of the next have no common count for a curve.
void sample(std::uint32_t step, trace::SeriesClock clock) noexcept {
  const std::int64_t now = trace::clock_ns(CLOCK_MONOTONIC);
  const bool due = clock != trace::SeriesClock::rounds && now >= next_look.load(std::memory_order_relaxed);
  if (!due && !wants_census(step, clock, now)) return;
  bool idle = false;
  // A child of a fork that came while its parent was looking never looks itself.
  if (!looking.compare_exchange_strong(idle, true, std::memory_order_acquire)) return;
  const int error = errno;
  trace::MemorySample at{};
  at.time_ns = trace::wall_clock_ns();
  at.step = step;
  if (due) {
    next_look.store(now + kInterval, std::memory_order_relaxed);
    at.used = look_at_memory(at, clock);
  }
  take_site_census(at, clock);
  errno = error;
  looking.store(false, std::memory_order_release);
}

// In a process without iterations of its own its trace, and the tensors that it has put into shared memory.
constinit std::atomic<std::uint64_t> iterating_epoch{0};
constinit std::atomic<std::uint64_t> sharing_epoch{0};
constinit std::atomic<std::uint32_t> shared_tensors{0};

void note_shared_tensor() noexcept {
  const std::uint64_t epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  if (epoch == 0 || thread_state().epoch != epoch || iterating_epoch.load(std::memory_order_relaxed) == epoch) return;
  if (sharing_epoch.exchange(epoch, std::memory_order_relaxed) != epoch) shared_tensors.store(0);
  sample(shared_tensors.fetch_add(1, std::memory_order_relaxed) + 1, trace::SeriesClock::shared_tensors);
}

// Since the last backward: the line whose returns are counted, how often it has, and how many others came between.
// Threads that count at once may lose one.
struct Rounds {
  std::atomic<trace::SiteId> line{trace::SiteId::none};
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint32_t> others{0};

  void start(trace::SiteId at) noexcept {
    line.store(at, std::memory_order_relaxed);
    count.store(0, std::memory_order_relaxed);
    others.store(0, std::memory_order_relaxed);
  }
};
constinit Rounds rounds{};
// As many without a backward are no iteration; a line that stays away for so many others belongs to what came before.
constexpr std::uint32_t kLeastRounds = 16;
constexpr std::uint32_t kMostOthers = 32;

// The next iteration, or a loop at another line, ends the rounds of this one.
void finish_rounds(trace::SiteId next) noexcept {
  if (rounds.line.load(std::memory_order_relaxed) == next) return;
  const bool counted = rounds.count.load(std::memory_order_relaxed) >= kLeastRounds;
  rounds.start(next);
  bool idle = false;
  if (!counted || !looking.compare_exchange_strong(idle, true, std::memory_order_acquire)) return;
  begin_rounds();
  looking.store(false, std::memory_order_release);
}

// A worker of a DataLoader puts each tensor of a batch into shared memory for the process that asked for it.
c10::intrusive_ptr<c10::StorageImpl> new_shared_storage(std::size_t size) {
  auto storage = at::new_shm_fd_storage(size);
  note_shared_tensor();
  return storage;
}

DEVSAN_REPLACEMENTS const Replacement sharing_replacements[] = {
    {reinterpret_cast<void*>(&at::new_shm_fd_storage), reinterpret_cast<void*>(&new_shared_storage)},
};

}  // namespace

std::uint64_t own_bytes() noexcept {
  const int error = errno;
  const std::uint64_t bytes = read_own_bytes();
  errno = error;
  return bytes;
}

DeviceBytes device_bytes(DeviceKey key) noexcept {
  DeviceBytes bytes;
#ifdef DEVSAN_DEVICE_ALLOCATORS
  try {
    const c10::Device device = device_of_key(key);
    c10::DeviceAllocator* const allocator = allocator_to_ask(device.type());
    if (allocator == nullptr) return bytes;
    bytes = bytes_in(allocator->getDeviceStats(device.index()));
  } catch (...) {  // no allocator of that kind, or one that cannot be asked
  }
#endif
  return bytes;
}

std::size_t devices_in_use([[maybe_unused]] std::span<DeviceUse> uses) noexcept {
  std::size_t used = 0;
#ifdef DEVSAN_DEVICE_ALLOCATORS
  try {
    for_each_device([&](c10::DeviceAllocator& allocator, c10::DeviceIndex index) {
      const c10::CachingDeviceAllocator::DeviceStats stats = allocator.getDeviceStats(index);
      if (stats.reserved_bytes[kAll].peak == 0 || used == uses.size()) return;
      DeviceUse& use = uses[used++];
      use.device = device_slot(device_key(c10::Device(c10::DeviceType::CUDA, index)));
      use.bytes = bytes_in(stats);
      use.peak = static_cast<std::uint64_t>(stats.allocated_bytes[kAll].peak);
    });
  } catch (...) {  // no allocator of CUDA, or one that cannot be asked
  }
#endif
  return used;
}

void watch_memory_over_forks() noexcept {
  pthread_atfork(nullptr, nullptr, note_fork);
}

void sample_memory(std::uint32_t step) noexcept {
  finish_rounds(trace::SiteId::none);
  iterating_epoch.store(runtime.epoch_page->epoch.load(std::memory_order_relaxed), std::memory_order_relaxed);
  sample(step, trace::SeriesClock::iterations);
}

void note_round(trace::SiteId site) noexcept {
  const trace::SiteId line = rounds.line.load(std::memory_order_relaxed);
  if (line != site) {
    if (line == trace::SiteId::none || rounds.others.fetch_add(1, std::memory_order_relaxed) >= kMostOthers)
      finish_rounds(site);
    return;
  }
  rounds.others.store(0, std::memory_order_relaxed);
  const std::uint32_t count = rounds.count.fetch_add(1, std::memory_order_relaxed) + 1;
  if (count >= kLeastRounds) sample(count, trace::SeriesClock::rounds);
}

}  // namespace devsan::hooks
