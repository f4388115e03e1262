// Whether a value is one that a key takes.
#pragma once

#include <string>

#include "doctor/config/known_keys.h"

namespace devsan::doctor {

// As Python's str() shows a value of a config: "True", "None", "2.0".
std::string python_text(const Json& value);

bool fits(const KeyInfo& info, const Json& value);

// "at least 1", where the value is outside of its bounds; else empty.
std::string broken_bound(const KeyInfo& info, const Json& value);

// What to write instead: the nearest value of an enum, else what is wanted.
std::string cure_for(const KeyInfo& info, const Json& value);

}  // namespace devsan::doctor
