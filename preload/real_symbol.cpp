#include "preload/real_symbol.h"

#include <link.h>

#include "preload/elf_image.h"

namespace devsan {

// The list is walked without the loader's lock. What is looked for lies in the C library or in an object before it, all
// mapped since start-up and never unmapped; new objects are appended behind them.
void* RealSymbol::find() noexcept {
  // By our own dynamic section the list tells which entry we are.
  const link_map* object = _r_debug.r_map;
  while (object != nullptr && object->l_ld != _DYNAMIC) object = object->l_next;
  if (object == nullptr) return nullptr;
  for (object = object->l_next; object != nullptr; object = object->l_next) {
    void* found = ElfImage(object->l_addr, object->l_ld).find_address(name_);
    if (found == nullptr) continue;
    address_.store(found, std::memory_order_release);
    return found;
  }
  return nullptr;
}

}  // namespace devsan
