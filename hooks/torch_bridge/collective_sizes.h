// What the tensors among a collective's arguments tell of it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hooks/torch_bridge/tensor_fields.h"

namespace devsan::hooks {

struct CollectiveSizes {
  DeviceKey device = 0;  // of the first tensor, and its dtype; 0 where there is none
  caffe2::TypeMeta dtype;
  std::uint64_t bytes[2] = {0, 0};  // of the first argument that has tensors, and of the others
  std::size_t arguments = 0;        // that have tensors
  bool makes_tensor = false;        // the collective makes the tensor itself

  template <class T>
  void add(const T& argument) noexcept {
    if (add_to(bytes[std::min<std::size_t>(arguments, 1)], argument)) ++arguments;
  }

  // A tensor of one element that the collective is going to make.
  void add_element(DeviceKey of_device, caffe2::TypeMeta of_dtype) noexcept {
    device = of_device;
    dtype = of_dtype;
    bytes[0] = of_dtype.itemsize();
    ++arguments;
    makes_tensor = true;
  }

 private:
  bool add_to(std::uint64_t& sum, const c10::TensorImpl* tensor) noexcept {
    if (tensor == c10::UndefinedTensorImpl::singleton()) return false;
    if (device == 0) {
      device = TensorFields::device(tensor);
      dtype = TensorFields::dtype(tensor);
    }
    if (!TensorFields::symbolic(tensor)) {
      const auto elements = static_cast<std::uint64_t>(c10::multiply_integers(TensorFields::sizes(tensor)));
      sum += elements * TensorFields::dtype(tensor).itemsize();
    }
    return true;
  }

  bool add_to(std::uint64_t& sum, const at::Tensor& tensor) noexcept {
    return add_to(sum, tensor.unsafeGetTensorImpl());
  }

  template <class T>
  bool add_to(std::uint64_t& sum, const std::vector<T>& list) noexcept {
    bool any = false;
    for (const T& element : list) any = add_to(sum, element) || any;
    return any;
  }

  bool add_to(std::uint64_t& sum, const c10::IValue& value) noexcept {
    if (value.isTensor()) return add_to(sum, value.unsafeToTensorImpl());
    if (!value.isList()) return false;
    bool any = false;
    for (const c10::IValue& element : value.toListRef()) {
      if (!element.isTensor() && !element.isList()) break;
      any = add_to(sum, element) || any;
    }
    return any;
  }
};

}  // namespace devsan::hooks
