// With the GIL (PythonSection); runs no code of the program.
#pragma once

namespace devsan::hooks {

// The function that an object stands for: itself, or what is inside a bound method, a property, a class or static
// method, functools.partial, or a wrapper that keeps it in its closure. Null where there is none.
const void* function_behind(const void* object);

}  // namespace devsan::hooks
