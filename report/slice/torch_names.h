// What a slice has to know of PyTorch's own names.
#pragma once

#include <algorithm>
#include <string_view>

#include "report/program/node.h"

namespace devsan::report::slice {

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::ranges::end(names);
}

// By the last name of a call: "zeros" of torch.zeros(3).
bool makes_tensor(std::string_view name);
bool makes_alike(std::string_view name);          // zeros_like, new_zeros
bool wraps_tensor(std::string_view name);         // Parameter, Buffer
bool makes_from_argument(std::string_view name);  // as_tensor, full, Parameter
bool moves(std::string_view name);                // to, cuda, cpu, numpy
bool moves_object(std::string_view name);         // to, cuda, cpu, to_empty
bool fills_container(std::string_view name);      // append, update, copy_
bool registers_hook(std::string_view name);
bool registers_member(std::string_view name);  // register_buffer, setattr
bool sets_default_device(std::string_view name);
bool loads_state(std::string_view name);
bool is_optimizer(std::string_view name);
bool is_tensor_method(std::string_view name);
// Gives a number or a question's answer, on no device.
bool gives_number(std::string_view name);
// Of a tensor's or parameter's own: data, grad, weight.
bool is_tensor_attribute(std::string_view name);
// nn.Linear(…), torch.nn.Linear(…)
bool makes_layer(program::Node callee);

}  // namespace devsan::report::slice
