// Phrases that rules share.
#pragma once

#include <string>
#include <string_view>

#include "report/finding.h"

namespace devsan::report::why {

// "`scale`", or "the operand `other`" for one that the program has no name for.
std::string mention(const Operand& operand);
// The same at the start of a sentence.
std::string mention_first(const Operand& operand);
// The call that moves `odd` to where `counterpart` is: "scale.to(x.device)", "(1. / scale).to(x.device)",
// "scale.to('cuda:0')" where the counterpart has no name to take the device from.
std::string move_call(const Operand& odd, const Operand& counterpart);
// How the device of this operand is written: "x.device", or "'cuda:0'" where it has no name to take it from.
std::string device_expression(const Operand& counterpart);
// "where it is used, in model.py:30: `x.to(y.device)`"; of what a library uses, whose lines are not for the program to
// change, "before it is given to the library, in train.py:12".
std::string where_used(const Operand& odd, const Operand& counterpart, const Finding& finding);
// A name, attribute, subscript or call, to which ".to(…)" can be appended as it is.
bool is_postfix_expression(std::string_view text);
// "the CPU", "cuda:1"
std::string spoken_device(std::string_view device);
// "Net" of "Net.mask".
std::string type_of_path(std::string_view type_and_attribute);
// "mask" of "Net.mask".
std::string_view attribute_of_path(std::string_view type_and_attribute);
// "takes in `x`, which is on cuda:0, and an operator in place cannot change its target's device."
std::string takes_in_place(const Operand& taken);
RootCause cause_at(const Frame& place, const Operand& operand, std::string why);
// Whether its value was ever copied from one device to another.
bool was_moved(const Operand& operand);

}  // namespace devsan::report::why
