// What the module `threading` knows of the interpreter's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/file_layout.h"

namespace devsan::hooks {

struct ThreadIdentity {
  std::uintptr_t ident = 0;  // Thread.ident; 0 where it is not known
  std::uint32_t tid = 0;     // Thread.native_id; 0 where it is not known
  trace::StringId name = trace::StringId::none;
};

// Where a PyThreadState holds the ident of its thread, found in that of the calling thread; -1 where it is not found.
std::ptrdiff_t offset_of_ident(const void* own) noexcept;

// Fills in `tid` and `name` by `ident`. With the GIL; runs no code of the program.
void name_threads(std::span<ThreadIdentity> threads) noexcept;

}  // namespace devsan::hooks
