#include "preload/plt_patcher.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "preload/process_maps.h"

namespace devsan {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::size_t kMaxWindows = 16;
// An object whose RELRO pages stay writable for so many looks is not being relocated: something keeps them so.
constexpr std::uint32_t kMaxLooks = 64;

// The pages that the loader makes read-only as the last step of relocating an object, rounded as it rounds them.
Extent relro_of(const dl_phdr_info& info) noexcept {
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_GNU_RELRO) continue;
    const std::uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    return {begin & ~(kPage - 1), (begin + segment.p_memsz) & ~(kPage - 1)};
  }
  return {};
}

Extent extent_of(const dl_phdr_info& info) noexcept {
  Extent extent{~std::uintptr_t{0}, 0};
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    extent.begin = std::min(extent.begin, info.dlpi_addr + segment.p_vaddr);
    extent.end = std::max(extent.end, info.dlpi_addr + segment.p_vaddr + segment.p_memsz);
  }
  return extent;
}

std::uintptr_t read_slot(void* const* slot) noexcept {
  return reinterpret_cast<std::uintptr_t>(__atomic_load_n(slot, __ATOMIC_ACQUIRE));
}

// The pages around a set of slots that cannot be written as they are.
class WritableWindows {
 public:
  // False when the protections cannot be known.
  bool find(Extent slots) noexcept {
    slots = {slots.begin & ~(kPage - 1), (slots.end + kPage - 1) & ~(kPage - 1)};
    bool room = true;
    const bool read = for_each_mapping(0, [&](const Mapping& mapping) {
      if (mapping.begin >= slots.end) return false;
      if (mapping.end <= slots.begin || !room) return true;
      room = count_ < kMaxWindows;
      if (room) {
        windows_[count_++] = {{std::max(mapping.begin, slots.begin), std::min(mapping.end, slots.end)},
                              mapping.protection};
      }
      return true;
    });
    return read && room && count_ != 0;
  }

  // The first page of `range` is looked at: the loader protects the whole of RELRO at once.
  bool any_writable(Extent range) const noexcept {
    return std::any_of(windows_, windows_ + count_, [&](const Window& window) {
      return (window.protection & PROT_WRITE) != 0 && window.pages.begin < range.end && window.pages.end > range.begin;
    });
  }

  bool open() noexcept {
    for (opened_ = 0; opened_ < count_; ++opened_) {
      if (!protect(windows_[opened_], PROT_WRITE)) {
        close();
        return false;
      }
    }
    return true;
  }

  void close() noexcept {
    for (std::size_t i = 0; i < opened_; ++i) protect(windows_[i], 0);
    opened_ = 0;
  }

 private:
  struct Window {
    Extent pages;
    int protection;
  };

  static bool protect(const Window& window, int added) noexcept {
    if ((window.protection & PROT_WRITE) != 0) return true;
    return mprotect(reinterpret_cast<void*>(window.pages.begin), window.pages.end - window.pages.begin,
                    window.protection | added) == 0;
  }

  Window windows_[kMaxWindows] = {};
  std::size_t count_ = 0;
  std::size_t opened_ = 0;
};

}  // namespace

void PltPatcher::leave_alone(const ElfW(Dyn) * dynamic) noexcept {
  if (left_alone_count_ < kMaxLeftAlone) left_alone_[left_alone_count_++] = dynamic;
}

bool PltPatcher::is_left_alone(const ElfW(Dyn) * dynamic) const noexcept {
  return std::find(left_alone_, left_alone_ + left_alone_count_, dynamic) != left_alone_ + left_alone_count_;
}

bool PltPatcher::start(const HookTable& table, const ElfImage& hooks) noexcept {
  leave_alone(hooks.dynamic());
  table_entries_ = {table.table_entries, table.table_entry_count};
  if (!objects_memory_.allocate(kMaxObjects * sizeof(Object))) return false;
  objects_ = objects_memory_.as<Object>();
  return index_.build(table, hooks);
}

namespace {

// Runs `visit` for every object of the program's namespace, in the loader's lock: none of them goes away meanwhile.
template <typename Visitor>
void for_each_object(Visitor visit) noexcept {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* visitor) {
        (*static_cast<Visitor*>(visitor))(*info);
        return 0;
      },
      &visit);
}

}  // namespace

bool PltPatcher::scan() noexcept {
  for (std::size_t i = 0; i < object_count_; ++i) objects_[i].present = false;
  cursor_ = 0;
  all_settled_ = true;
  for_each_object([this](const dl_phdr_info& info) { see(info); });
  forget_absent();
  return all_settled_;
}

void PltPatcher::set_enabled(bool enabled) noexcept {
  if (enabled == enabled_) return;
  enabled_ = enabled;
  cursor_ = 0;
  for_each_object([this](const dl_phdr_info& info) { toggle(info); });
}

// Objects come in the order in which they were loaded, so the one looked for is nearly always the next.
PltPatcher::Object* PltPatcher::find(ElfW(Addr) base, const ElfW(Dyn) * dynamic) noexcept {
  for (std::size_t step = 0; step < object_count_; ++step) {
    const std::size_t at = (cursor_ + step) % object_count_;
    if (objects_[at].base == base && objects_[at].dynamic == dynamic) {
      cursor_ = at + 1;
      return &objects_[at];
    }
  }
  return nullptr;
}

void PltPatcher::see(const dl_phdr_info& info) noexcept {
  const ElfImage image(info);
  if (image.dynamic() == nullptr || is_left_alone(image.dynamic())) return;
  Object* object = find(image.base(), image.dynamic());
  if (object == nullptr) {
    if (object_count_ == kMaxObjects) return;
    object = new (&objects_[object_count_++]) Object{image.base(), image.dynamic(), {}};
    cursor_ = object_count_;
  }
  object->present = true;
  if (object->waiting != 0 && demanded_.load(std::memory_order_relaxed)) end_waiting(info, object);
  if (image.base() == 0) fixed_program_ = extent_of(info);
  // An object that was unloaded and loaded again at its old place has fresh slots.
  if (enabled_ && object->patched() != 0) {
    const Slot& first = object->slots.as<Slot>()[0];
    if (read_slot(first.address) != reinterpret_cast<std::uintptr_t>(first.wrapper)) drop_slots(object);
  }
  if (!object->settled) patch(info, image, object);
  all_settled_ = all_settled_ && object->settled;
}

void PltPatcher::patch(const dl_phdr_info& info, const ElfImage& image, Object* object) noexcept {
  ++object->looks;
  if (!collect(info, image, object)) return;
  Stored stored = Stored::all;
  if (object->patched() != 0 && enabled_) stored = store(info, *object, true, object->looks < kMaxLooks);
  object->settled = stored != Stored::not_yet;
  if (stored == Stored::all) return;
  if (stored == Stored::refused) ++refused_;
  const bool settled = object->settled;
  drop_slots(object);
  object->settled = settled;
}

void PltPatcher::end_waiting(const dl_phdr_info& info, Object* object) noexcept {
  object->waiting = 0;
  if (enabled_ && store(info, *object, true, false) == Stored::refused) ++refused_;
}

// Before the loader has relocated an object, which another thread's dlopen may be at, its slots hold offsets into its
// own PLT: addresses that only a program at a fixed address can have mapped. The last JUMP_SLOT is done last.
bool PltPatcher::is_relocated(const ElfImage& image, const Extent& extent) const noexcept {
  const auto plt = image.plt_relocations();
  if (plt.empty() || image.base() == 0) return true;
  const std::uintptr_t last = read_slot(image.slot(plt.back()));
  return last == 0 || last >= extent.end - image.base() || fixed_program_.contains(last);
}

// Finds the slots to patch. False when it is too early: the loader would take what is stored for an offset.
bool PltPatcher::collect(const dl_phdr_info& info, const ElfImage& image, Object* object) const noexcept {
  const Extent extent = extent_of(info);
  if (!is_relocated(image, extent)) return false;
  const auto plt = image.plt_relocations();
  const auto other = image.other_relocations();
  const std::size_t most = plt.size() + other.size() + table_entries_.size();
  if (!object->slots.allocate((most + 1) * sizeof(Slot))) return false;
  auto* slots = object->slots.as<Slot>();
  std::uint32_t count = 0;
  const auto consider = [&](const ElfW(Rela) & relocation, bool may_be_lazy) {
    void** slot = image.slot(relocation);
    const std::uintptr_t value = read_slot(slot);
    // An undefined symbol with a value is the address that this program gave a foreign function, in its own PLT. The
    // wrapper itself comes through there.
    const ElfW(Sym)& symbol = image.symbol(relocation);
    if (value == 0 || (symbol.st_shndx == SHN_UNDEF && symbol.st_value != 0)) return;
    void* original = reinterpret_cast<void*>(value);
    const char* const name = image.symbol_name(relocation);
    const bool unbound = may_be_lazy && extent.contains(value);
    void* wrapper = index_.by_address(original, name);
    if (wrapper == nullptr && unbound) {
      void* real = nullptr;
      wrapper = index_.by_name(name, &real);
    }
    if (wrapper == nullptr && replace_other_ != nullptr) {
      wrapper = replace_other_(name, unbound ? nullptr : original, image);
    }
    if (wrapper != nullptr && wrapper != original) slots[count++] = {slot, wrapper, original};
  };
  const auto consider_table_entry = [&](const ElfW(Rela) & relocation) {
    void** slot = image.slot(relocation);
    if (reinterpret_cast<std::uintptr_t>(slot) % sizeof(void*) != 0) return;
    void* original = reinterpret_cast<void*>(read_slot(slot));
    if (void* wrapper = index_.in_tables(original)) slots[count++] = {slot, wrapper, original};
  };
  for (const ElfW(Rela) & relocation : other) {
    const auto type = ELF64_R_TYPE(relocation.r_info);
    if (type == R_X86_64_GLOB_DAT) consider(relocation, false);
    if (type == R_X86_64_64) consider_table_entry(relocation);
  }
  for (const ElfW(Rela) & relocation : plt) {
    if (ELF64_R_TYPE(relocation.r_info) == R_X86_64_JUMP_SLOT) consider(relocation, true);
  }
  for (const TableEntry& entry : table_entries_) {
    if (!extent.contains(reinterpret_cast<std::uintptr_t>(entry.slot))) continue;
    void* original = reinterpret_cast<void*>(read_slot(entry.slot));
    if (original != nullptr && original != entry.wrapper) slots[count++] = {entry.slot, entry.wrapper, original};
  }
  object->slot_count = count;
  if (!demanded_.load(std::memory_order_relaxed)) {
    Slot* const waiting = std::partition(slots, slots + count, [&](const Slot& slot) {
      return !index_.waits_in(slot.wrapper, extent.begin, extent.end);
    });
    object->waiting = static_cast<std::uint32_t>(slots + count - waiting);
  }
  object->slots.shrink(count * sizeof(Slot));
  return true;
}

PltPatcher::Stored PltPatcher::store(const dl_phdr_info& info, const Object& object, bool wrappers,
                                     bool may_wait) noexcept {
  const std::span slots(object.slots.as<const Slot>(), object.patched());
  const auto [low, high] = std::minmax_element(slots.begin(), slots.end(),
                                               [](const Slot& a, const Slot& b) { return a.address < b.address; });
  const Extent range{reinterpret_cast<std::uintptr_t>(low->address),
                     reinterpret_cast<std::uintptr_t>(high->address) + sizeof(void*)};
  WritableWindows windows;
  if (!windows.find(range)) return Stored::refused;
  // Not protected yet: the loader is still at it, and would find its pages read-only when we are done.
  if (may_wait && windows.any_writable(relro_of(info))) return Stored::not_yet;
  if (!windows.open()) return Stored::refused;
  for (const Slot& slot : slots) {
    __atomic_store_n(slot.address, wrappers ? slot.wrapper : slot.original, __ATOMIC_RELEASE);
  }
  windows.close();
  return Stored::all;
}

void PltPatcher::toggle(const dl_phdr_info& info) noexcept {
  const ElfImage image(info);
  Object* object = find(image.base(), image.dynamic());
  if (object == nullptr || object->patched() == 0) return;
  if (store(info, *object, enabled_, false) == Stored::refused) ++refused_;
}

void PltPatcher::drop_slots(Object* object) noexcept {
  object->slots.release();
  object->slot_count = 0;
  object->waiting = 0;
  object->settled = false;
}

void PltPatcher::forget_absent() noexcept {
  std::size_t kept = 0;
  slot_count_ = 0;
  for (std::size_t i = 0; i < object_count_; ++i) {
    Object& object = objects_[i];
    if (!object.present) {
      object.slots.release();
      continue;
    }
    slot_count_ += object.slot_count;
    if (kept != i) objects_[kept] = std::move(object);
    ++kept;
  }
  object_count_ = kept;
}

}  // namespace devsan
