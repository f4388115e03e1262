// Which calls of PyTorch take a device, and by which argument.
#pragma once

#include <string_view>

#include "report/program/expressions.h"

namespace devsan::report::fixes {

// "device" of torch.zeros and nn.Linear, "map_location" of torch.load. Empty for a call that takes none, and for one
// whose keywords are not known.
std::string_view device_argument_of(const program::CallParts& call);
// x.new_zeros(3), torch.zeros_like(x): on the device of x unless they are told another.
bool makes_like_another(const program::CallParts& call);
// x.to(d), x.cuda(), x.cpu()
bool is_move(const program::CallParts& call);
// The device in `x.to(d)`; none where a move says none, or only a dtype.
program::Node device_of_move(const program::CallParts& call);
// nn.Linear(…), a module of torch.nn.
bool makes_layer(const program::CallParts& call);

}  // namespace devsan::report::fixes
