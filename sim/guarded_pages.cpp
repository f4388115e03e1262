#include "sim/guarded_pages.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <vector>

#include "sim/pages.h"

namespace devsan::sim {

// Never freed, only used again: a signal handler may look at one at any time.
struct GuardedBlock {
  std::mutex mutex;  // guards `users` and the protection of the pages
  std::size_t users = 0;
  std::size_t first_page = 0;
  std::size_t pages = 0;
  std::atomic<std::size_t> bytes{0};
  std::atomic<c10::DeviceIndex> device{0};
};

namespace detail {
std::atomic<bool> pages_are_guarded{false};
}

namespace {

// A tensor takes whole pages, and holes cannot be filled by what is larger.
constexpr std::size_t kSpacePerByte = 4;
constexpr std::size_t kMostSpace = std::size_t{1} << 44;
constexpr std::size_t kLeastSpace = std::size_t{1} << 30;

char* g_begin = nullptr;
std::size_t g_pages = 0;
std::atomic<GuardedBlock*>* g_starts = nullptr;  // by page: the block that begins there
std::atomic<bool> g_giving_up{false};
std::atomic<bool> g_gave_up{false};  // all pages are open
void (*g_say)(const char*) = nullptr;

std::size_t pages_for(std::size_t bytes) noexcept {
  return round_up(bytes, kPageBytes) / kPageBytes;
}

void* reserve(std::size_t bytes, int protection) noexcept {
  void* memory = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // A core dump would look at every page, and a device's memory is in no core on hardware either.
  madvise(memory, bytes, MADV_DONTDUMP);
  return memory;
}

// Which pages are free: the smallest hole that fits is taken, so that the pages in use stay close together.
class FreePages {
 public:
  void add(std::size_t first, std::size_t count) {
    auto after = holes_.lower_bound(first);
    if (after != holes_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == first) {
        first = before->first;
        count += before->second;
        by_size_.erase({before->second, before->first});
        holes_.erase(before);
      }
    }
    if (after != holes_.end() && first + count == after->first) {
      count += after->second;
      by_size_.erase({after->second, after->first});
      holes_.erase(after);
    }
    holes_.emplace(first, count);
    by_size_.emplace(count, first);
  }

  std::optional<std::size_t> take(std::size_t count) {
    const auto found = by_size_.lower_bound({count, 0});
    if (found == by_size_.end()) return std::nullopt;
    const auto [size, first] = *found;
    by_size_.erase(found);
    holes_.erase(first);
    if (size > count) {
      holes_.emplace(first + count, size - count);
      by_size_.emplace(size - count, first + count);
    }
    return first;
  }

 private:
  std::map<std::size_t, std::size_t> holes_;               // first page, pages
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // pages, first page
};

struct Books {
  std::mutex mutex;
  FreePages free;
  std::deque<GuardedBlock> blocks;
  std::vector<GuardedBlock*> unused;
};

Books& books() {
  static auto* all = new Books();  // outlives every tensor
  return *all;
}

bool protect(std::size_t first_page, std::size_t pages, int protection) noexcept {
  return mprotect(g_begin + first_page * kPageBytes, pages * kPageBytes, protection) == 0;
}

// The kernel limits how many ranges of different protection a process has: all of it open is one range.
void give_up() noexcept {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (g_gave_up.load()) return;
  g_giving_up.store(true);
  protect(0, g_pages, PROT_READ | PROT_WRITE);
  g_gave_up.store(true);
  g_say("too many memory ranges (vm.max_map_count): device pages are no longer guarded");
}

void open(const GuardedBlock& block) noexcept {
  if (!g_gave_up.load() && !protect(block.first_page, block.pages, PROT_READ | PROT_WRITE)) give_up();
}

void close(const GuardedBlock& block) noexcept {
  if (g_giving_up.load()) return;
  if (!protect(block.first_page, block.pages, PROT_NONE)) give_up();
  // Who gives up may have opened all pages just before these were closed.
  if (g_giving_up.load()) protect(block.first_page, block.pages, PROT_READ | PROT_WRITE);
}

// Null where no hole of the reserved space is large enough.
GuardedBlock* take_block(std::size_t bytes, c10::DeviceIndex device) {
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  if (all.unused.empty()) {
    all.unused.push_back(&all.blocks.emplace_back());
  }
  const std::size_t pages = pages_for(bytes);
  const std::optional<std::size_t> first = all.free.take(pages);
  if (!first) return nullptr;
  GuardedBlock* block = all.unused.back();
  all.unused.pop_back();
  block->first_page = *first;
  block->pages = pages;
  block->bytes.store(bytes, std::memory_order_relaxed);
  block->device.store(device, std::memory_order_relaxed);
  g_starts[*first].store(block, std::memory_order_release);
  return block;
}

void release_block(void* context) {
  auto* block = static_cast<GuardedBlock*>(context);
  g_starts[block->first_page].store(nullptr, std::memory_order_release);
  madvise(g_begin + block->first_page * kPageBytes, block->pages * kPageBytes, MADV_DONTNEED);
  try {
    Books& all = books();
    const std::lock_guard lock(all.mutex);
    all.free.add(block->first_page, block->pages);
    all.unused.push_back(block);
  } catch (const std::bad_alloc&) {  // the pages stay closed, and are not used again
  }
}

// A storage nearly always begins where its block does.
GuardedBlock* block_around(const void* address) noexcept {
  if (!is_guarded(address)) return nullptr;
  const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(address) - g_begin);
  for (std::size_t page = offset / kPageBytes + 1; page-- > 0;) {
    GuardedBlock* block = g_starts[page].load(std::memory_order_acquire);
    if (block == nullptr) continue;
    const std::size_t pages = pages_for(block->bytes.load(std::memory_order_relaxed));
    return offset / kPageBytes - page < pages ? block : nullptr;
  }
  return nullptr;
}

}  // namespace

bool guard_device_pages(std::size_t bytes, void (*say)(const char* text)) noexcept {
  g_say = say;
  for (std::size_t space = std::clamp(bytes, kLeastSpace, kMostSpace / kSpacePerByte) * kSpacePerByte;
       space >= kLeastSpace; space /= 2) {
    const std::size_t pages = space / kPageBytes;
    void* memory = reserve(space, PROT_NONE);
    void* starts = memory != nullptr ? reserve(pages * sizeof *g_starts, PROT_READ | PROT_WRITE) : nullptr;
    if (starts != nullptr) {
      g_begin = static_cast<char*>(memory);
      g_pages = pages;
      g_starts = static_cast<std::atomic<GuardedBlock*>*>(starts);
      books().free.add(0, pages);
      detail::pages_are_guarded.store(true, std::memory_order_release);
      return true;
    }
    if (memory != nullptr) munmap(memory, space);
  }
  return false;
}

c10::DataPtr guarded_memory(std::size_t bytes, c10::DeviceIndex device) {
  GuardedBlock* block = take_block(bytes, device);
  if (block == nullptr) return c10::GetCPUAllocator()->allocate(bytes);
  return {g_begin + block->first_page * kPageBytes, block, &release_block, c10::DeviceType::CPU};
}

c10::DataPtr moved_to_guarded(c10::DataPtr host, std::size_t bytes, c10::DeviceIndex device) {
  c10::DataPtr memory = guarded_memory(bytes, device);
  const OpenPages open(memory.get());
  std::memcpy(memory.get(), host.get(), bytes);
  return memory;
}

bool is_guarded(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return pages_are_guarded() && at - reinterpret_cast<std::uintptr_t>(g_begin) < g_pages * kPageBytes;
}

bool find_guarded(const void* address, GuardedMemory* found) noexcept {
  const GuardedBlock* block = block_around(address);
  if (block == nullptr) return false;
  *found = {g_begin + block->first_page * kPageBytes, block->bytes.load(std::memory_order_relaxed),
            block->device.load(std::memory_order_relaxed)};
  return true;
}

namespace detail {

GuardedBlock* open_pages(const void* memory) noexcept {
  GuardedBlock* block = block_around(memory);
  if (block == nullptr) return nullptr;
  const std::lock_guard lock(block->mutex);
  if (block->users++ == 0) open(*block);
  return block;
}

void close_pages(GuardedBlock* block) noexcept {
  const std::lock_guard lock(block->mutex);
  if (--block->users == 0) close(*block);
}

}  // namespace detail

}  // namespace devsan::sim
