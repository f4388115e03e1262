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
// "stage3.py:2117"
std::string short_place(const Frame& frame);
// The call that moves `odd` to where `counterpart` is: "scale.to(x.device)", "(1. / scale).to(x.device)",
// "scale.to('cuda:0')" where the counterpart has no name to take the device from.
std::string move_call(const Operand& odd, const Operand& counterpart);
// Whether its value was ever copied from one device to another.
bool was_moved(const Operand& operand);

}  // namespace devsan::report::why
