// What an address in code belongs to, found in the mapped objects: no lock of the loader's is taken, and nothing is
// allocated, so it can be asked in a signal handler.
#pragma once

#include <cstdint>
#include <string_view>

namespace devsan::hooks {

struct NativePlace {
  std::string_view module;   // path of the object; empty where the address is in none
  std::string_view symbol;   // as the object has it, mangled; empty where no exported function is around the address
  std::uint64_t offset = 0;  // into the symbol, or into the object without one
};

// To be called before a signal handler asks.
void prepare_native_places() noexcept;

// Of an object that stays mapped meanwhile. Nothing is found where the C library has no _dl_find_object (before 2.35).
NativePlace native_place(const void* address) noexcept;

}  // namespace devsan::hooks
