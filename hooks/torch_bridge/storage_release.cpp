#include "hooks/torch_bridge/storage_release.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/inprocess/provenance/large_page.h"

// The virtual table of c10::StorageImpl, by its name in the Itanium C++ ABI. Weak, since a torch that gives it no
// external linkage can still be hooked, without origins.
extern "C" __attribute__((weak)) void* storage_impl_vtable[] __asm__("_ZTVN3c1011StorageImplE");

namespace devsan::hooks {

DEVSAN_OFTEN_READ constinit const void* watched_table = nullptr;

namespace {

using Destructor = void (*)(void*);
DEVSAN_OFTEN_READ constinit Destructor real_deleting_destructor = nullptr;

[[gnu::noinline, gnu::cold]] void delete_storage_of_copy(void* storage) {
  pending_copies.forget_storage(storage);
  real_deleting_destructor(storage);
}

DEVSAN_OFTEN_RUN void delete_storage(void* storage) {
  origin_table().erase(storage);
  if (attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return delete_storage_of_copy(storage);
  real_deleting_destructor(storage);
}

// The words of a virtual table: offset to top, type information, complete destructor, deleting destructor, and then the
// other functions, since c10::intrusive_ptr_target declares its destructor first.
constexpr std::size_t kFirstFunction = 2;
constexpr std::size_t kDeletingDestructor = 3;

bool store_in_read_only(std::atomic<Destructor>* slot, Destructor value) noexcept {
  const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_size - 1));
  if (::mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
  slot->store(value);
  ::mprotect(page, page_size, PROT_READ);
  return true;
}

// Lets a storage die and looks whether its tag went with it.
bool tag_dies_with_storage() {
  auto storage =
      c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0, c10::DataPtr(), nullptr, false);
  const void* address = storage.get();
  if (!tells_when_it_dies(storage.get())) return false;
  OriginTable::fill(origin_table().vacancy(address), address, trace::LineageId{1});
  storage.reset();
  const bool died = origin_table().find(address) == trace::LineageId::none;
  origin_table().erase(address);
  return died;
}

}  // namespace

bool watch_storage_release() noexcept {
  if (storage_impl_vtable == nullptr) return false;
  auto* slot = reinterpret_cast<std::atomic<Destructor>*>(&storage_impl_vtable[kDeletingDestructor]);
  real_deleting_destructor = slot->load();
  if (!store_in_read_only(slot, &delete_storage)) return false;
  watched_table = &storage_impl_vtable[kFirstFunction];
  if (tag_dies_with_storage()) return true;
  store_in_read_only(slot, real_deleting_destructor);
  watched_table = nullptr;
  return false;
}

}  // namespace devsan::hooks
