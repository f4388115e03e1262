#include "sim/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "sim/device_guard.h"
#include "sim/devices.h"
#include "sim/guarded_pages.h"
#include "sim/host_faults.h"
#include "sim/pages.h"
#include "sim/pinned_pages.h"

namespace devsan::sim {
namespace {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

// The sizes that CUDA's caching allocator works with, so that the numbers come out as on hardware.
constexpr std::size_t kBlockSize = 512;
constexpr std::size_t kSmallRequest = std::size_t{1} << 20;
constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
constexpr std::size_t kLargeSegment = std::size_t{20} << 20;
constexpr std::size_t kLargeRequest = std::size_t{10} << 20;

std::string format_size(std::size_t bytes) {
  char text[32];
  const auto size = static_cast<double>(bytes);
  if (bytes <= 1024) {
    std::snprintf(text, sizeof(text), "%zu bytes", bytes);
  } else if (bytes <= 1048576) {
    std::snprintf(text, sizeof(text), "%.2f KiB", size / 1024.0);
  } else if (bytes <= 1073741824) {
    std::snprintf(text, sizeof(text), "%.2f MiB", size / 1048576.0);
  } else {
    std::snprintf(text, sizeof(text), "%.2f GiB", size / 1073741824.0);
  }
  return text;
}

// One device's books. Blocks are never fragmented: a pool reserves a further segment only when the bytes it has
// reserved do not cover what is in use.
class DeviceBooks {
 public:
  void take(std::size_t requested, c10::DeviceIndex device) {
    const std::size_t block = round_up(requested, kBlockSize);
    const Pool pool = pool_of(block);
    const std::lock_guard lock(mutex_);
    const std::size_t free_in_pool = reserved_[pool] - used_[pool];
    if (block > free_in_pool) reserve(pool, block - free_in_pool, requested, device);
    used_[pool] += block;
    change(stats_.allocation, pool, 1);
    change(stats_.active, pool, 1);
    change(stats_.allocated_bytes, pool, static_cast<std::int64_t>(block));
    change(stats_.active_bytes, pool, static_cast<std::int64_t>(block));
    change(stats_.requested_bytes, pool, static_cast<std::int64_t>(requested));
  }

  void give_back(std::size_t requested) {
    const std::size_t block = round_up(requested, kBlockSize);
    const Pool pool = pool_of(block);
    const std::lock_guard lock(mutex_);
    used_[pool] -= block;
    change(stats_.allocation, pool, -1);
    change(stats_.active, pool, -1);
    change(stats_.allocated_bytes, pool, -static_cast<std::int64_t>(block));
    change(stats_.active_bytes, pool, -static_cast<std::int64_t>(block));
    change(stats_.requested_bytes, pool, -static_cast<std::int64_t>(requested));
  }

  void empty_cache() {
    const std::lock_guard lock(mutex_);
    release_unused();
  }

  DeviceStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_accumulated() {
    for_each_stat([](c10::CachingAllocator::Stat& stat) { stat.reset_accumulated(); });
  }

  void reset_peak() {
    for_each_stat([](c10::CachingAllocator::Stat& stat) { stat.reset_peak(); });
  }

  std::size_t free_bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_per_device() - total_reserved();
  }

 private:
  enum Pool : std::size_t { kSmall = 0, kLarge = 1, kPools = 2 };

  static Pool pool_of(std::size_t block) { return block <= kSmallRequest ? kSmall : kLarge; }

  static std::size_t segment_size(Pool pool, std::size_t missing) {
    if (pool == kSmall) return kSmallSegment;
    return missing < kLargeRequest ? kLargeSegment : round_up(missing, kSmallSegment);
  }

  static void change(StatArray& stat, Pool pool, std::int64_t amount) {
    const StatType of_pool = pool == kSmall ? StatType::SMALL_POOL : StatType::LARGE_POOL;
    for (const StatType type : {StatType::AGGREGATE, of_pool}) {
      auto& one = stat[static_cast<std::size_t>(type)];
      if (amount >= 0) {
        one.increase(static_cast<std::size_t>(amount));
      } else {
        one.decrease(static_cast<std::size_t>(-amount));
      }
    }
  }

  std::size_t total_reserved() const { return reserved_[kSmall] + reserved_[kLarge]; }

  void reserve(Pool pool, std::size_t missing, std::size_t requested, c10::DeviceIndex device) {
    const std::size_t segment = segment_size(pool, missing);
    if (total_reserved() + segment > bytes_per_device()) {
      release_unused();
      ++stats_.num_alloc_retries;
    }
    // What is left may hold the block though not a whole segment.
    const std::size_t left = bytes_per_device() - total_reserved();
    if (missing > left) raise_out_of_memory(requested, device);
    const std::size_t taken = segment <= left ? segment : missing;
    reserved_[pool] += taken;
    ++stats_.num_device_alloc;
    change(stats_.segment, pool, 1);
    change(stats_.reserved_bytes, pool, static_cast<std::int64_t>(taken));
  }

  void release_unused() {
    for (const Pool pool : {kSmall, kLarge}) {
      const std::size_t kept = std::min(reserved_[pool], round_up(used_[pool], kSmallSegment));
      const std::size_t released = reserved_[pool] - kept;
      if (released == 0) continue;
      reserved_[pool] = kept;
      change(stats_.reserved_bytes, pool, -static_cast<std::int64_t>(released));
      const StatType type = pool == kSmall ? StatType::SMALL_POOL : StatType::LARGE_POOL;
      const std::int64_t segments = stats_.segment[static_cast<std::size_t>(type)].current;
      const std::int64_t left = kept == 0 ? 0 : std::max<std::int64_t>(1, segments - 1);
      stats_.num_device_free += segments - left;
      change(stats_.segment, pool, left - segments);
    }
  }

  [[noreturn]] void raise_out_of_memory(std::size_t requested, c10::DeviceIndex device) {
    ++stats_.num_ooms;
    const std::size_t used = used_[kSmall] + used_[kLarge];
    const std::string text = c10::str(
        "CUDA out of memory. Tried to allocate ", format_size(round_up(requested, kBlockSize)), ". GPU ",
        static_cast<int>(device), " has a total capacity of ", format_size(bytes_per_device()), " of which ",
        format_size(bytes_per_device() - total_reserved()), " is free. Including non-PyTorch memory, this process has ",
        format_size(total_reserved()), " memory in use. Of the allocated memory ", format_size(used),
        " is allocated by PyTorch, and ", format_size(total_reserved() - used),
        " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
        "Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#environment-variables)");
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 13
    tell_fails(text.c_str());  // later, the error's constructor is a function of libc10's, which the hooks see
#endif
    throw c10::OutOfMemoryError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text);
  }

  template <typename Reset>
  void for_each_stat(Reset reset) {
    const std::lock_guard lock(mutex_);
    for (StatArray* stats :
         {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split, &stats_.allocated_bytes,
          &stats_.reserved_bytes, &stats_.active_bytes, &stats_.inactive_split_bytes, &stats_.requested_bytes}) {
      for (auto& stat : *stats) reset(stat);
    }
  }

  std::mutex mutex_;
  std::array<std::size_t, kPools> reserved_{};
  std::array<std::size_t, kPools> used_{};
  DeviceStats stats_;
};

DeviceBooks& books(c10::DeviceIndex device) {
  static auto* all = new std::array<DeviceBooks, kMaxDevices>();  // outlives every tensor
  return (*all)[static_cast<std::size_t>(device)];
}

// The ranges of memory of one kind, to answer what a pointer points into.
class Ranges {
 public:
  void add(const void* start, std::size_t bytes, c10::DeviceIndex device) {
    const std::lock_guard lock(mutex_);
    ranges_.insert_or_assign(reinterpret_cast<std::uintptr_t>(start), Range{bytes, device});
  }

  void remove(const void* start) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(reinterpret_cast<std::uintptr_t>(start));
  }

  std::optional<c10::DeviceIndex> find(const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const std::lock_guard lock(mutex_);
    auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) return std::nullopt;
    --next;
    if (address - next->first >= next->second.bytes) return std::nullopt;
    return next->second.device;
  }

  // 0 where none starts there.
  std::size_t bytes_at(const void* start) {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(reinterpret_cast<std::uintptr_t>(start));
    return found != ranges_.end() ? found->second.bytes : 0;
  }

 private:
  struct Range {
    std::size_t bytes;
    c10::DeviceIndex device;
  };
  std::mutex mutex_;
  std::map<std::uintptr_t, Range> ranges_;
};

Ranges& device_ranges() {
  static auto* ranges = new Ranges();
  return *ranges;
}

Ranges& pinned_ranges() {
  static auto* ranges = new Ranges();
  return *ranges;
}

// The context of a device pointer: the host memory it really is.
struct DeviceBlock {
  c10::DataPtr host;
  std::size_t bytes;
  c10::DeviceIndex device;
};

c10::DataPtr host_memory(std::size_t bytes, c10::DeviceIndex device) {
  if (!pages_are_guarded()) return c10::GetCPUAllocator()->allocate(bytes);
  stay_before_faulthandler();
  return guarded_memory(bytes, device);
}

void release_device_block(void* context) {
  const std::unique_ptr<DeviceBlock> block(static_cast<DeviceBlock*>(context));
  device_ranges().remove(block->host.get());
  books(block->device).give_back(block->bytes);
}

class SimulatedAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::DeviceIndex device = current_device();
    if (bytes == 0) return {nullptr, {kSimulatedType, device}};
    // The books first: a request that the device cannot hold must not reach the host's allocator.
    books(device).take(bytes, device);
    try {
      return wrap(host_memory(bytes, device), bytes, device);
    } catch (...) {
      books(device).give_back(bytes);
      throw;
    }
  }

  static c10::DataPtr wrap(c10::DataPtr host, std::size_t bytes, c10::DeviceIndex device) {
    void* data = host.get();
    in_use().store(true, std::memory_order_relaxed);
    auto block = std::make_unique<DeviceBlock>(DeviceBlock{std::move(host), bytes, device});
    device_ranges().add(data, bytes, device);
    return {data, block.release(), &release_device_block, {kSimulatedType, device}};
  }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    const OpenPages open_destination(destination), open_source(source);
    std::memcpy(destination, source, bytes);
  }

  // CUDA's is once the devices are in use, which a process that is forked before may still do.
  bool initialized() override { return in_use().load(std::memory_order_relaxed); }
  void emptyCache(c10::MempoolId_t) override {
    for (int device = 0; device < device_count(); ++device) books(static_cast<c10::DeviceIndex>(device)).empty_cache();
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // memory is never in use after an operator returned
  DeviceStats getDeviceStats(c10::DeviceIndex device) override { return checked_books(device).stats(); }
  void resetAccumulatedStats(c10::DeviceIndex device) override { checked_books(device).reset_accumulated(); }
  void resetPeakStats(c10::DeviceIndex device) override { checked_books(device).reset_peak(); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return {checked_books(device).free_bytes(), bytes_per_device()};
  }

 private:
  static std::atomic<bool>& in_use() {
    static constinit std::atomic<bool> used{false};
    return used;
  }
  static DeviceBooks& checked_books(c10::DeviceIndex device) {
    check_device(device);
    return books(device);
  }
};

std::atomic<std::uint64_t>* pinned_total = nullptr;

struct PinnedBlock {
  c10::DataPtr host;
  void* data;  // on pages of its own
  std::size_t bytes;
};

void release_pinned_block(void* context) {
  const std::unique_ptr<PinnedBlock> block(static_cast<PinnedBlock*>(context));
  pinned_ranges().remove(block->data);
  forget_pinned_pages(block->data);
  if (pinned_total != nullptr) pinned_total->fetch_sub(block->bytes, std::memory_order_relaxed);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::DeviceType::CPU};
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(round_up(bytes, kPageBytes) + kPageBytes);
    void* data = reinterpret_cast<void*>(round_up(reinterpret_cast<std::uintptr_t>(host.get()), kPageBytes));
    auto block = std::make_unique<PinnedBlock>(PinnedBlock{std::move(host), data, bytes});
    pinned_ranges().add(data, bytes, 0);
    if (pinned_total != nullptr) pinned_total->fetch_add(bytes, std::memory_order_relaxed);
    return {data, block.release(), &release_pinned_block, c10::DeviceType::CPU};
  }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    std::memcpy(destination, source, bytes);
  }
};

SimulatedAllocator& allocator() {
  static auto* one = new SimulatedAllocator();
  return *one;
}

constexpr std::uint8_t kAllocatorPriority = 255;  // over that of a torch built with CUDA

}  // namespace

c10::DeviceAllocator* device_allocator() {
  return &allocator();
}

c10::DataPtr adopt_host_memory(c10::DataPtr host, std::size_t bytes, c10::DeviceIndex device) {
  if (host.get() == nullptr) return {nullptr, {kSimulatedType, device}};
  if (pages_are_guarded()) {
    stay_before_faulthandler();
    host = moved_to_guarded(std::move(host), bytes, device);
  }
  books(device).take(bytes, device);
  return SimulatedAllocator::wrap(std::move(host), bytes, device);
}

void resize_storage(c10::StorageImpl& storage, std::size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const CurrentDevice on(storage.device().index());
  c10::DataPtr grown = device_allocator()->allocate(bytes);
  const std::size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) device_allocator()->copy_data(grown.get(), storage.data(), kept);
  storage.set_data_ptr_noswap(std::move(grown));
  storage.set_nbytes(bytes);
}

std::optional<c10::DeviceIndex> device_of_pointer(const void* pointer) {
  return device_ranges().find(pointer);
}

c10::Allocator* pinned_allocator() {
  static auto* one = new PinnedAllocator();
  return one;
}

void count_pinned_in(std::atomic<std::uint64_t>* bytes) {
  pinned_total = bytes;
}

std::size_t pinned_bytes_at(const void* block) {
  return pinned_ranges().bytes_at(block);
}

bool is_pinned(const void* pointer) {
  return pinned_ranges().find(pointer).has_value();
}

void register_allocator() {
  c10::SetAllocator(kSimulatedType, &allocator(), kAllocatorPriority);
}

}  // namespace devsan::sim
