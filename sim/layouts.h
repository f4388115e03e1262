// Rebuilds a tensor of any layout over other memory: that is what the CPU face of a simulated tensor is, and the
// simulated tensor that is made of an operator's result.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/FunctionRef.h>

#include <vector>

namespace devsan::sim {

// Gives the other side's memory for a storage, and the other side's tensor for a part of a sparse tensor.
struct Parts {
  c10::function_ref<c10::Storage(const c10::Storage&)> storage;
  c10::function_ref<at::Tensor(const at::Tensor&)> tensor;
};

// A tensor of `device` with the layout, shape and properties of `model`, made of what `parts` gives for the parts of
// `model`. Raises NotImplementedError for a layout that is none of PyTorch's own strided, sparse, nested and quantized.
at::Tensor rebuild(const at::Tensor& model, c10::Device device, const Parts& parts);

// The tensors that a sparse tensor consists of; none for another layout.
std::vector<at::Tensor> parts_of(const at::Tensor& tensor);

// The tensors that say what a nested tensor's shapes are, and lie on the CPU for every device; none for another layout.
std::vector<at::Tensor> host_parts_of(const at::Tensor& tensor);

bool is_coalesced(const at::Tensor& tensor);

// Gives the sparse tensor `target` the sizes of `model`, and parts made of those of `model`.
void assign(const at::Tensor& target, const at::Tensor& model, const Parts& parts);

}  // namespace devsan::sim
