// Which device an expression says, as far as the source and the calls that ran tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/program/node.h"
#include "report/slice/code.h"

namespace devsan::report::fixes {

// "cpu", "cuda", "cuda:1". None where nothing tells, as for `x.device`.
std::optional<std::string> device_value(program::Node expression, const slice::Code& code);
// Of a variable that is defined so.
std::optional<std::string> device_value(const program::Definition& definition, const slice::Code& code);
// "cuda" is the first one, mostly.
bool is_same_device(std::string_view said, std::string_view device);
// A string or torch.device(…) of strings and numbers.
bool says_device(program::Node expression);

}  // namespace devsan::report::fixes
