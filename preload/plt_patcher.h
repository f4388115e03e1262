// Puts wrappers in place of functions in the PLT and GOT slots of every loaded object, and takes them out again.
//
// Patched are JUMP_SLOT and GLOB_DAT relocations: the slots through which code calls a function of another object.
// R_X86_64_64 is not: that is an address stored as a value (tables of kernels, the hooks' own table of real functions),
// which a program may compare or which leads back to the real function on purpose. The few functions that are called
// through such tables alone say so (Replacement::in_tables). Where a function has no symbol, the hooks name the entry
// of the table (TableEntry).
//
// A slot is patched when it holds the real function, or still leads to the loader's lazy binding and names it. A slot
// that another object's function of that name has won is left alone. Objects in other namespaces (dlmopen) are not
// seen.
#pragma once

#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "preload/elf_image.h"
#include "preload/hooks_abi.h"
#include "preload/page_memory.h"
#include "preload/replacement_index.h"

namespace devsan {

struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool contains(std::uintptr_t address) const noexcept { return address >= begin && address < end; }
};

// Not thread-safe but for demand(): the caller sees to it that one thread at a time is in here.
class PltPatcher {
 public:
  // Objects that keep the real functions, by the address of their dynamic section.
  void leave_alone(const ElfW(Dyn) * dynamic) noexcept;
  bool start(const HookTable& table, const ElfImage& hooks) noexcept;
  bool started() const noexcept { return index_.size() != 0; }

  // Asked about slots that hold none of the table's functions: what is to stand in a slot of `object` that names
  // `symbol` and holds `real` (null: it is not bound yet); `real` or null where nothing is. To be set before the first
  // scan.
  using Replace = void* (*)(const char* symbol, void* real, const ElfImage& object) noexcept;
  void ask_about_others(Replace replace) noexcept { replace_other_ = replace; }

  // Looks at the objects that were loaded since the last call and forgets those that are gone. False when an object was
  // still being relocated by another thread: call again.
  bool scan() noexcept;

  // Stores what every patched slot held before, or the wrappers again.
  void set_enabled(bool enabled) noexcept;

  // Has the next scan() put the wrappers that wait for a demand in their places.
  void demand() noexcept { demanded_.store(true, std::memory_order_relaxed); }

  std::size_t slots() const noexcept { return slot_count_; }
  std::size_t objects_refused() const noexcept { return refused_; }

 private:
  struct Slot {
    void** address;
    void* wrapper;
    void* original;
  };
  struct Object {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
    PageMemory slots;
    std::uint32_t slot_count = 0;
    std::uint32_t waiting = 0;  // slots, the last ones, that keep what they hold until there is a demand
    std::uint32_t looks = 0;
    bool settled = false;  // false: has to be looked at again
    bool present = false;
    std::uint32_t patched() const noexcept { return slot_count - waiting; }
  };

  void see(const dl_phdr_info& info) noexcept;
  void toggle(const dl_phdr_info& info) noexcept;
  Object* find(ElfW(Addr) base, const ElfW(Dyn) * dynamic) noexcept;
  bool is_left_alone(const ElfW(Dyn) * dynamic) const noexcept;
  void patch(const dl_phdr_info& info, const ElfImage& image, Object* object) noexcept;
  void end_waiting(const dl_phdr_info& info, Object* object) noexcept;
  bool is_relocated(const ElfImage& image, const Extent& extent) const noexcept;
  bool collect(const dl_phdr_info& info, const ElfImage& image, Object* object) const noexcept;
  enum class Stored { all, not_yet, refused };
  static Stored store(const dl_phdr_info& info, const Object& object, bool wrappers, bool may_wait) noexcept;
  void drop_slots(Object* object) noexcept;
  void forget_absent() noexcept;

  static constexpr std::size_t kMaxObjects = 8192;
  static constexpr std::size_t kMaxLeftAlone = 4;

  ReplacementIndex index_;
  std::span<const TableEntry> table_entries_;
  Replace replace_other_ = nullptr;
  PageMemory objects_memory_;
  Object* objects_ = nullptr;
  std::size_t object_count_ = 0;
  std::size_t cursor_ = 0;  // where the next object of a walk most likely stands
  std::size_t slot_count_ = 0;
  std::size_t refused_ = 0;
  const ElfW(Dyn) * left_alone_[kMaxLeftAlone] = {};
  std::size_t left_alone_count_ = 0;
  Extent fixed_program_;  // the program itself, when it is not position-independent
  std::atomic<bool> demanded_{false};
  bool enabled_ = true;
  bool all_settled_ = true;
};

}  // namespace devsan
