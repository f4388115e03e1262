// What the source says of a value's type: whether it is one tensor, which `.to()` could move.
#pragma once

#include <string_view>

#include "report/program/node.h"
#include "report/slice/code.h"

namespace devsan::report::fixes {

// A list, number, string, dictionary or the like, or an object that is none of torch's.
bool is_no_tensor(program::Node expression, const slice::Code& code);
// The function asks the parameter what only tensors answer.
bool is_used_as_tensor(program::Node function, std::string_view parameter);
// The function takes the name's value apart, loops over it or calls it.
bool is_used_as_other(program::Node function, std::string_view name);
bool is_derived_from_module(program::Node class_definition, const slice::Code& code);

}  // namespace devsan::report::fixes
