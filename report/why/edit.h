// The edit itself, written from the source line that it changes. Where a line is not understood the edit is told in
// words; these functions then return empty text.
#pragma once

#include <string>
#include <string_view>

#include "report/finding.h"

namespace devsan::report::why {

// The text of the call at this position: "torch.zeros(3)". Empty where Python keeps no columns, or over several lines.
std::string call_at(const Frame& place);
// "torch.zeros(3)" -> "torch.zeros(3, device='cuda:0')"; another value for an argument that the call gives by that
// name. Empty for what is no call.
std::string with_argument(std::string_view call, std::string_view argument);
// How the wanted device is written at `place`: "x.device" in the function where the devices met, if `wanted` is known
// there by then; "'cuda:0'" anywhere else.
std::string device_at(const Frame& place, const Operand& wanted, const Finding& finding);
// "self.bias = torch.ones(3)" -> "self.register_buffer('bias', torch.ones(3))". Empty for other lines.
std::string registered_as_buffer(const Frame& place, std::string_view attribute);
// To make the attribute that `place` stores a buffer; the edit told in words where it cannot be written. An attribute
// that ends with "]" is an entry of a container.
Fix register_as_buffer(const Frame& place, std::string_view attribute);
// To move the module that is made at `place`.
Fix move_module_where_made(const Frame& place, std::string_view device);
// "acts = batch['acts']" -> "acts = batch['acts'].to(DEVICE)". Empty for other lines.
std::string assigned_after_move(const Frame& place, std::string_view device);

}  // namespace devsan::report::why
