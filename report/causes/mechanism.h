// How a device comes to be wrong, in as many kinds as a person can tell apart.
#pragma once

#include <cstdint>
#include <string_view>

#include "report/slice/slice.h"

namespace devsan::report {

enum class Mechanism : std::uint8_t {
#define DEVSAN_MECHANISM(name, title, change, ...) name,
#include "report/causes/mechanisms.def"
#undef DEVSAN_MECHANISM
};

// Also that of its page in docs/causes.
std::string_view name_of(Mechanism mechanism);
// With `{}`, `{device}`, `{to}` and `{code}`.
std::string_view change_of(Mechanism mechanism);
Mechanism mechanism_of(slice::Role role);

}  // namespace devsan::report
