// What is asked of a tensor where an operator has failed. Says it without torch's headers, which cost four seconds in
// every source that includes them: those are compiled on the user's machine, while the program waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/file_layout.h"

// As torch declares them.
namespace c10 {
struct StorageImpl;
struct TensorImpl;
}  // namespace c10

namespace devsan::hooks {

// A device as one number: type, index and a mark that there is one (tensor_fields.h). 0 for an undefined tensor.
using DeviceKey = std::uint32_t;

// What an operand is known by while the call is on the stack.
struct OperandIdentity {
  const void* object = nullptr;             // its PyObject; null where Python has none
  const c10::TensorImpl* tensor = nullptr;  // null for generators and device arguments
  const void* generator = nullptr;          // its c10::GeneratorImpl; most have no PyObject of their own
};

// For a wrapper of torch.func, that of the value in it; for a sparse tensor, that of its values. Null where there is
// none.
const c10::StorageImpl* storage_of(const c10::TensorImpl* tensor) noexcept;
DeviceKey device_of(const c10::TensorImpl* tensor) noexcept;
trace::DeviceSlot device_slot_of(const c10::TensorImpl* tensor) noexcept;
std::size_t dims_of(const c10::TensorImpl* tensor) noexcept;
// Whether it has no elements. A tensor whose sizes are symbols has some.
bool is_empty(const c10::TensorImpl* tensor) noexcept;
// Whether it lies in memory of the host that is certainly pinned. The driver is not asked while it captures a graph.
bool is_pinned_host_memory(const c10::TensorImpl* tensor) noexcept;
// Never null: where it has none, the undefined tensor.
const c10::TensorImpl* gradient_of(const c10::TensorImpl* tensor) noexcept;
// Whether it was computed by operators that autograd has recorded. With the GIL.
bool has_graph(const c10::TensorImpl* tensor) noexcept;
// Whether autograd computes its gradient. With the GIL.
bool is_trained(const c10::TensorImpl* tensor) noexcept;

}  // namespace devsan::hooks
