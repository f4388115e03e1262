// The C++ exception that the calling thread threw last. Python exceptions cross torch's C++ code as pybind11's
// error_already_set, which takes them out of the interpreter: this is the only way to what they say.
#pragma once

namespace devsan::hooks {

// The Python exception object inside the exception thrown last on this thread, if that was a pybind11 one; null
// otherwise. Valid while that exception is on its way.
const void* python_exception_in_flight() noexcept;

}  // namespace devsan::hooks
