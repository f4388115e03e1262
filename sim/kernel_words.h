// The words in which kernels refuse their operands.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

namespace devsan::sim {

// To be called where an error of the CPU's kernel was caught: raises what CUDA's kernel raises for the same operands.
[[noreturn]] void rethrow_as_cuda(const c10::OperatorHandle& op, const c10::Error& error);

// After a kernel failed on the device, everything that uses a device of this process raises that again.
void check_context();

// For what compares operators one after another: the next one runs.
void restore_context() noexcept;

}  // namespace devsan::sim
