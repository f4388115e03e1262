// Places of the whole program that may decide a device whatever an operand comes through: default devices, hooks,
// restored states, moves and what they depend on.
#pragma once

#include <vector>

#include "report/slice/code.h"
#include "report/slice/slice.h"

namespace devsan::report::slice {

std::vector<Place> program_places(const Code& code);

}  // namespace devsan::report::slice
