// The memory that calls have allocated and not given back: what a call that frees it does not say. A table of fixed
// size; several threads may use it at once, without a lock. What finds no room is not remembered.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "preload/page_memory.h"
#include "trace/memory_layout.h"

namespace devsan::cuda {

// Memory of one allocation.
struct Block {
  std::uint64_t bytes = 0;
  int device = -1;
  trace::MemorySpace space = trace::MemorySpace::none;
};

class Ledger {
 public:
  // Makes the table, or empties it. Not while another thread uses it. False without memory.
  bool clear() noexcept;

  // By address. An address that is taken out before it is freed may be given out again by the driver at once.
  bool add(std::uint64_t address, const Block& block) noexcept;
  std::optional<Block> take(std::uint64_t address) noexcept;

  // Physical memory lives as long as one of its handles or mappings does. Each of these gives the block when it has
  // just come to an end.
  bool add_physical(std::uint64_t handle, const Block& block) noexcept;
  void retain(std::uint64_t handle) noexcept;
  int device_of(std::uint64_t handle) noexcept;  // -1 unknown
  std::optional<Block> release(std::uint64_t handle) noexcept;
  void map(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle) noexcept;
  // One mapping, which begins at `address`: its size, 0 where none is known. To be called for one after the other.
  std::uint64_t unmap(std::uint64_t address, std::optional<Block>* ended) noexcept;

 private:
  enum class Role : std::uint64_t { memory = 0, handle = 1, mapping = 2, physical = 3 };

  struct Entry {
    std::atomic<std::uint64_t> key;
    std::uint64_t bytes;
    std::uint64_t physical;              // of a handle or mapping: number of the physical memory
    std::atomic<std::uint32_t> holders;  // of physical memory: handles and mappings; of a handle: times it was given
    std::int16_t device;
    trace::MemorySpace space;
  };

  static constexpr std::size_t kEntries = std::size_t{1} << 16;
  static constexpr std::size_t kProbes = 64;
  static constexpr std::uint64_t kEmpty = 0;
  static constexpr std::uint64_t kRemoved = 1;
  static constexpr std::uint64_t kBeingFilled = 2;

  static std::uint64_t key_of(Role role, std::uint64_t value) noexcept;
  Entry* find(std::uint64_t key) noexcept;
  Entry* insert(std::uint64_t key, const Block& block, std::uint64_t physical, std::uint32_t holders) noexcept;
  std::optional<Block> let_go(std::uint64_t physical) noexcept;

  PageMemory memory_;
  Entry* entries_ = nullptr;
  std::atomic<std::uint64_t> last_physical_{0};  // the last number given
};

}  // namespace devsan::cuda
