// The data files of this folder, put into the program when it is built.
#pragma once

#include <string_view>

namespace devsan::doctor {

extern const std::string_view kKnownBugsToml;
extern const std::string_view kKnownKeysJson;

}  // namespace devsan::doctor
