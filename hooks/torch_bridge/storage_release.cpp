#include "hooks/torch_bridge/storage_release.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/inprocess/provenance/large_page.h"

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

// The functions of a virtual table begin with complete destructor and deleting destructor, since
// c10::intrusive_ptr_target declares its destructor first.
constexpr std::size_t kDeletingDestructor = 1;

bool store_in_read_only(std::atomic<Destructor>* slot, Destructor value) noexcept {
  const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_size - 1));
  if (::mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
  slot->store(value);
  ::mprotect(page, page_size, PROT_READ);
  return true;
}

// LibTorch makes it, so its table is that of LibTorch's storages. One that is made here can have another: up to torch
// 2.9 StorageImpl has no function outside its header, and each library brings a table of its own, this one too.
c10::intrusive_ptr<c10::StorageImpl> storage_of_libtorch() {
  static char memory;  // without any, torch asks the allocator for it
  c10::DataPtr data(&memory, c10::Device(c10::kCPU));
  return c10::make_storage_impl(c10::StorageImpl::use_byte_size_t(), 0, std::move(data), nullptr, false,
                                c10::Device(c10::kCPU));
}

// Lets a storage die and looks whether its tag went with it.
bool tag_dies_with_storage() {
  auto storage = storage_of_libtorch();
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
  const void* const table = virtual_table(storage_of_libtorch().get());
  void** const functions = static_cast<void**>(const_cast<void*>(table));
  auto* slot = reinterpret_cast<std::atomic<Destructor>*>(&functions[kDeletingDestructor]);
  real_deleting_destructor = slot->load();
  if (!store_in_read_only(slot, &delete_storage)) return false;
  watched_table = table;
  if (tag_dies_with_storage()) return true;
  store_in_read_only(slot, real_deleting_destructor);
  watched_table = nullptr;
  return false;
}

}  // namespace devsan::hooks
