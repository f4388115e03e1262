// The tensors that a running function was given: its arguments, and the entries of lists and dictionaries among them.
//
// With the GIL (PythonSection); bounded by what the function holds; runs no code of the program. May throw
// std::bad_alloc.
#pragma once

#include <vector>

#include "hooks/inprocess/snapshot/object_search.h"

namespace devsan::hooks {

struct ArgumentTensor {
  const void* object;
  const c10::TensorImpl* tensor;
};

// As the function's variables are now: one that it has changed since counts with its new value.
std::vector<ArgumentTensor> argument_tensors(const ObjectSearch& search, const void* frame);

}  // namespace devsan::hooks
