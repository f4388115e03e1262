// Objects that may move an operand by a method of their own, as `batch.to(device)` does.
//
// With the GIL (PythonSection); runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "hooks/inprocess/evidence/evidence.h"

namespace devsan::hooks {

inline constexpr std::array<std::string_view, 6> kOwnMovers = {"to",        "cuda",    "cpu",
                                                               "to_device", "move_to", "pin_memory"};

// Whether the function is a method by whose name an object moves itself.
bool is_own_mover(const void* code);

// An object, and what it calls an operand, or what that belongs to.
struct Part {
  const void* holder;
  const void* name;
};

// The objects that are no modules, and the modules, that may move an operand by a method of their own: the nearest
// first.
std::vector<Part> parts_around(const Inquiry& inquiry, std::size_t operand);

}  // namespace devsan::hooks
