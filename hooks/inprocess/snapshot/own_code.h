// The functions of the program, as far as they can be reached from the running ones: those that run, what is defined
// inside of them, and the functions and classes of their modules. Torch's are not among them, nor are libraries'.
//
// With the GIL (PythonSection); bounded; runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <unordered_set>
#include <vector>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/snapshot/object_graph.h"

namespace devsan::hooks {

class OwnCode {
 public:
  explicit OwnCode(const void* innermost_frame);

  const std::vector<const void*>& code() const { return code_; }            // code objects
  const std::vector<const void*>& functions() const { return functions_; }  // function objects

 private:
  class Gatherer;
  std::vector<const void*> code_;
  std::vector<const void*> functions_;
};

// The functions in the classes that `type` is made of, outside torch, base classes last; library code among them.
std::vector<const void*> functions_of_type(const void* type);
// The code of the one among them that goes by a name, the most derived; null without one.
const void* method_named(const void* type, std::string_view name);

// The function that an object stands for: itself, or what is inside a bound method, a property, a class or static
// method, functools.partial, or a wrapper that keeps it in its closure. Null where there is none.
const void* function_behind(const void* object);

}  // namespace devsan::hooks
