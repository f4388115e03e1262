// Tensors that an optimizer keeps about a parameter: `optimizer.state[parameter]['exp_avg']`.
#pragma once

#include <string>

#include "hooks/inprocess/snapshot/object_search.h"

namespace devsan::hooks {

struct OptimizerState {
  const void* optimizer = nullptr;  // null where the operand is no such state
  const void* key = nullptr;        // a str
  std::string name;                 // "exp_avg of layers.0.weight"
};

// Whether an object is an optimizer: it has parameter groups beside its state. With the GIL.
bool keeps_parameter_groups(const void* object) noexcept;

// May throw std::bad_alloc. With the GIL (PythonSection).
OptimizerState optimizer_state(const ObjectSearch& search, const void* tensor);

// What a parameter or buffer is called from the outermost module that it is in: "layers.0.weight". Empty where no
// module was met that owns it.
std::string name_in_modules(const ObjectSearch& search, const void* tensor);

}  // namespace devsan::hooks
