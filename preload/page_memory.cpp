#include "preload/page_memory.h"

#include <sys/mman.h>

namespace devsan {

bool PageMemory::allocate(std::size_t bytes) noexcept {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  bytes_ = bytes;
  return true;
}

void PageMemory::shrink(std::size_t bytes) noexcept {
  constexpr std::size_t kPage = 4096;
  const std::size_t kept = (bytes + kPage - 1) / kPage * kPage;
  const std::size_t held = (bytes_ + kPage - 1) / kPage * kPage;
  if (kept == 0) return release();
  if (kept < held && munmap(static_cast<char*>(memory_) + kept, held - kept) == 0) bytes_ = kept;
}

void PageMemory::release() noexcept {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  memory_ = nullptr;
  bytes_ = 0;
}

}  // namespace devsan
