#include "sim/pinned_pages.h"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "sim/allocator.h"
#include "sim/host_faults.h"
#include "sim/pages.h"

namespace devsan::sim {
namespace {

// Memory of which pages are closed, or were. Written under the lock; read by handlers of faults without one.
struct Block {
  std::atomic<char*> begin{nullptr};
  std::atomic<std::size_t> bytes{0};  // whole pages
  std::atomic<bool> closed{false};
};

constexpr std::size_t kBlocks = 64;  // the hooks follow 62 copies
std::array<Block, kBlocks> g_blocks;
std::mutex g_lock;
std::atomic<const DeviceWatch*>* g_host_watch = nullptr;

bool open_block(Block& block, char* begin) noexcept {
  const bool closed = block.closed.exchange(false);
  mprotect(begin, block.bytes.load(), PROT_READ | PROT_WRITE);
  return closed;
}

void open(const void* memory) noexcept {
  for (Block& block : g_blocks) {
    char* begin = block.begin.load(std::memory_order_acquire);
    if (begin != nullptr && begin == memory) open_block(block, begin);
  }
}

void open_all() noexcept {
  for (Block& block : g_blocks) {
    char* begin = block.begin.load(std::memory_order_acquire);
    if (begin != nullptr && block.closed.load()) open_block(block, begin);
  }
}

// The one that is known already, or the first that is free, or open; null where all are closed.
Block* place_for(char* begin) noexcept {
  Block* place = nullptr;
  for (Block& block : g_blocks) {
    char* known = block.begin.load(std::memory_order_relaxed);
    if (known == begin) return &block;
    const bool better = place == nullptr || (known == nullptr && place->begin.load() != nullptr);
    if (better && !block.closed.load()) place = &block;
  }
  return place;
}

// Before the first page is closed. A fork child has no copies of its own: its pages are its own from the start.
void start() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { open_all(); });
    watch_host_faults(g_host_watch);
  });
}

bool close(const void* memory, std::uint64_t begin, std::uint64_t end, bool for_writes) noexcept {
  const std::size_t bytes = pinned_bytes_at(memory);
  if (bytes == 0 || begin >= bytes) return false;
  if (end > bytes) end = bytes;
  start();
  // Where the program has a handler of its own, it would see faults that it did not cause.
  if (!host_faults_are_seen()) return false;
  auto* block_begin = static_cast<char*>(const_cast<void*>(memory));
  const std::lock_guard lock(g_lock);
  Block* block = place_for(block_begin);
  if (block == nullptr) return false;
  if (block->begin.load() != block_begin) {
    block->begin.store(nullptr, std::memory_order_release);
    block->bytes.store(round_up(bytes, kPageBytes));
    block->begin.store(block_begin, std::memory_order_release);
  }
  const std::uint64_t first = begin / kPageBytes * kPageBytes;
  block->closed.store(true);
  return mprotect(block_begin + first, round_up(end, kPageBytes) - first, for_writes ? PROT_READ : PROT_NONE) == 0;
}

constexpr PinnedPages kPinnedPages{&close, &open};

}  // namespace

void offer_pinned_pages(const HostServices& host) {
  g_host_watch = host.device_watch;
  host.pinned_pages->store(&kPinnedPages, std::memory_order_release);
}

void forget_pinned_pages(const void* memory) noexcept {
  for (Block& block : g_blocks) {
    char* begin = block.begin.load(std::memory_order_acquire);
    if (begin == nullptr || begin != memory) continue;
    const std::lock_guard lock(g_lock);
    if (block.begin.load() != begin) continue;
    open_block(block, begin);
    block.begin.store(nullptr, std::memory_order_release);
  }
}

Touch touch_pinned_pages(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (Block& block : g_blocks) {
    char* begin = block.begin.load(std::memory_order_acquire);
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    if (begin == nullptr || at < first || at - first >= block.bytes.load()) continue;
    return open_block(block, begin) ? Touch::closed : Touch::open;
  }
  return Touch::none;
}

}  // namespace devsan::sim
