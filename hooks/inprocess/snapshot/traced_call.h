// torch.compile runs a function without running it: dynamo reads its byte code, and calls each operator with tensors
// that have no memory (FakeTensor). When an operator refuses those, the frames of the thread are dynamo's. What the
// program was doing is in dynamo's objects: one `InstructionTranslator` for each function that it is in the middle of.
//
// Their members are torch's own business. Each one is looked for by its name and its kind; where one is missing, there
// is no traced call, and the finding is placed by the frames.
//
// With the GIL (PythonSection). May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace devsan::hooks {

// A function that dynamo is reading. Borrowed: the thread's frames keep all of it.
struct TracedFunction {
  const void* translator = nullptr;
  const void* code = nullptr;
  int instruction = 0;  // where it stands, in bytes, as frames count
};

struct TracedCall {
  const void* node = nullptr;             // the torch.fx.Node whose operator was called
  std::vector<TracedFunction> functions;  // from the innermost outwards; at least one
  const void* caller = nullptr;           // the frame that called the compiled function; null where there is none

  // The one that was compiled: the others are part of it.
  const void* root() const { return functions.back().translator; }
};

// Whether one of the innermost frames is dynamo's that runs an operator. Needs no GIL.
bool is_in_traced_call(const void* innermost) noexcept;

// None where the thread is not in one, or functions of the program's run below dynamo, whose frames know better.
std::optional<TracedCall> traced_call(const void* innermost);

// The frame in which dynamo compiles the function that the thread is about to run; null where it does not. Needs no
// GIL.
const void* compiling_frame(const void* innermost) noexcept;

}  // namespace devsan::hooks
