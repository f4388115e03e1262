// What torch's own Python code complains of without an operator: nn.DataParallel looks at the devices of a model's
// weights before each forward, parameters_to_vector at those of what it is given. Such an exception passes no code of
// torch's libraries; one that nobody catches is kept by the interpreter until that ends, with its traceback.
#pragma once

namespace devsan::hooks {

// Looks at it then. Called with the GIL, once, and only where there is a Python.
void watch_left_exceptions() noexcept;

}  // namespace devsan::hooks
