// The two faces of one block of memory: a simulated CUDA tensor, and a CPU tensor over the same bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <utility>

namespace devsan::sim {

inline bool is_simulated(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::CUDA;
}

// Gives every tensor of one operator call its CPU face. A tensor or a storage met twice gets the same face twice, so
// that the operator sees the aliasing that its caller made. The face of a sparse tensor is a sparse tensor of the faces
// of its indices and values.
class HostAliases {
 public:
  at::Tensor alias(const at::Tensor& simulated);

  // What an operator returned, as a tensor of `device`: an operand itself where it returned one, a view of an operand's
  // storage where it returned a view, and otherwise new memory of the device.
  at::Tensor simulated(const at::Tensor& host, c10::Device device);

  // Carries a new shape, a grown storage or new parts over to the tensor whose face the operator changed.
  void write_back(const at::Tensor& simulated);

 private:
  c10::Storage alias_storage(const c10::Storage& simulated);
  void write_back_strided(const at::Tensor& simulated, const at::Tensor& host);
  c10::Storage simulated_storage(const c10::Storage& host, c10::Device device);

  c10::SmallVector<std::pair<at::Tensor, at::Tensor>, 6> tensors_;       // simulated, host
  c10::SmallVector<std::pair<c10::Storage, c10::Storage>, 6> storages_;  // simulated, host
};

// For kernels with one or two operands that return none of them.
at::Tensor host_alias(const at::Tensor& simulated);

}  // namespace devsan::sim
