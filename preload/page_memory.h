// Memory straight from the kernel: patching runs inside the loader's lock, where a program's allocator may not be
// called.
#pragma once

#include <cstddef>
#include <utility>

namespace devsan {

// Not freed by itself: what it is used for lasts as long as the process.
class PageMemory {
 public:
  PageMemory() noexcept = default;
  PageMemory(PageMemory&& other) noexcept { *this = std::move(other); }
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // Zeroed. Pages that are never touched cost nothing.
  bool allocate(std::size_t bytes) noexcept;
  void shrink(std::size_t bytes) noexcept;
  void release() noexcept;
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace devsan
