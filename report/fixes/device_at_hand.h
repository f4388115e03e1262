// How a device is written at a place of the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/fixes/site.h"

namespace devsan::report::fixes {

// What names the wanted device at the place, the surest first: the other operand in its own function, a variable or
// attribute that says it, what the function gives to others, a tensor that the function gets. At last the literal.
// `value`, which is to be brought there, is not asked for its own.
std::vector<std::string> devices_at_hand(const Site& site, program::Node place, program::Node value = {});
// The first of them that is not `given`.
std::string device_at_hand(const Site& site, program::Node place, program::Node value = {},
                           std::string_view given = "");

}  // namespace devsan::report::fixes
