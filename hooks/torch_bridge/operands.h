// Finds the operands among an operator's arguments: tensors (alone, optional, in the five kinds of lists), storages,
// generators and device arguments. Two passes over the same arguments: look() runs before every call and only compares
// devices; enumerate() runs for a meeting and names each operand by its place.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/IListRef_inl.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "hooks/torch_bridge/tensor_fields.h"

namespace devsan::hooks {

// What one pass over the arguments has seen. CPU tensors without dimensions count only where nothing else is there:
// PyTorch takes them as numbers beside tensors of any device, and so makes every Python number one.
struct Operands {
  DeviceKey device = 0;                    // of `first`; 0 while no operand was seen
  bool mixed = false;                      // operands on two devices
  const c10::TensorImpl* first = nullptr;  // the operand that results take their device from
};

// Out of line: the first operand's device differs from this one's.
void look_at_other_device(Operands& seen, const c10::TensorImpl* tensor, DeviceKey device) noexcept;

inline void look_at(Operands& seen, const c10::TensorImpl* tensor) noexcept {
  const DeviceKey device = TensorFields::device(tensor);
  if (device == seen.device) [[likely]]
    return;
  if (seen.device == 0) {
    seen.device = device;
    seen.first = tensor;
    return;
  }
  look_at_other_device(seen, tensor, device);
}

template <class T>
inline void look(Operands&, const T&) noexcept {}
inline void look(Operands& seen, const at::Tensor& tensor) noexcept {
  look_at(seen, tensor.unsafeGetTensorImpl());
}
inline void look(Operands& seen, const std::optional<at::Tensor>& tensor) noexcept {
  if (tensor.has_value()) look(seen, *tensor);
}
inline void look(Operands& seen, const at::TensorList& list) noexcept {
  for (const at::Tensor& tensor : list) look(seen, tensor);
}
inline void look(Operands& seen, const at::ITensorListRef& list) {
  if (list.isUnboxed()) [[likely]]  // its iterator asks at every step which kind of list it is
    return look(seen, list.toUnboxed());
  for (const at::Tensor& tensor : list) look(seen, tensor);
}
inline void look(Operands& seen, const c10::List<std::optional<at::Tensor>>& list) {
  for (const auto& element : list) {
    const c10::IValue& value = element.get();
    if (value.isTensor()) look_at(seen, value.unsafeToTensorImpl());
  }
}

// A module's weight tells more about why an operator runs on a device than the input that was sent there: where both
// lie on one device, the result takes its history from the weight. Nothing changes in what is compared.
inline void prefer(Operands& seen, const at::Tensor& tensor) noexcept {
  if (TensorFields::device(tensor.unsafeGetTensorImpl()) == seen.device) seen.first = tensor.unsafeGetTensorImpl();
}
inline void prefer(Operands& seen, const std::optional<at::Tensor>& tensor) noexcept {
  if (tensor.has_value()) prefer(seen, *tensor);
}
inline void prefer(Operands& seen, const at::TensorList& list) noexcept {
  if (!list.empty()) prefer(seen, list.front());
}

// Receives the operands of one call. `argument` counts the operator's arguments from 0, `element` the entries of a list
// argument (-1 outside a list).
class OperandSink {
 public:
  virtual void tensor(int argument, int element, const c10::TensorImpl* tensor) = 0;
  virtual void generator(int argument, const at::Generator& generator) = 0;
  virtual void device(int argument, c10::Device device) = 0;
  virtual void storage(int argument, const at::Storage& storage) = 0;

 protected:
  ~OperandSink() = default;
};

template <class T>
void enumerate(OperandSink&, int, const T&) {}
inline void enumerate_one(OperandSink& sink, int argument, int element, const c10::TensorImpl* tensor) {
  if (TensorFields::device(tensor) != 0) sink.tensor(argument, element, tensor);
}
inline void enumerate(OperandSink& sink, int argument, const at::Tensor& tensor) {
  enumerate_one(sink, argument, -1, tensor.unsafeGetTensorImpl());
}
inline void enumerate(OperandSink& sink, int argument, const std::optional<at::Tensor>& tensor) {
  if (tensor.has_value()) enumerate(sink, argument, *tensor);
}
template <class List>
void enumerate_list(OperandSink& sink, int argument, const List& list) {
  int element = 0;
  for (const at::Tensor& tensor : list) enumerate_one(sink, argument, element++, tensor.unsafeGetTensorImpl());
}
inline void enumerate(OperandSink& sink, int argument, const at::TensorList& list) {
  enumerate_list(sink, argument, list);
}
inline void enumerate(OperandSink& sink, int argument, const at::ITensorListRef& list) {
  enumerate_list(sink, argument, list);
}
inline void enumerate(OperandSink& sink, int argument, const c10::List<std::optional<at::Tensor>>& list) {
  int element = 0;
  for (const auto& entry : list) {
    const c10::IValue& value = entry.get();
    if (value.isTensor()) enumerate_one(sink, argument, element, value.unsafeToTensorImpl());
    ++element;
  }
}
inline void enumerate(OperandSink& sink, int argument, const std::optional<at::Generator>& generator) {
  if (generator.has_value() && generator->defined()) sink.generator(argument, *generator);
}
inline void enumerate(OperandSink& sink, int argument, const at::Storage& storage) {
  if (storage) sink.storage(argument, storage);
}
inline void enumerate(OperandSink& sink, int argument, const std::optional<at::Device>& device) {
  if (device.has_value()) sink.device(argument, *device);
}
inline void enumerate(OperandSink& sink, int argument, const at::Device& device) {
  sink.device(argument, device);
}

// The arguments of one call as a thing that can be handed to code that does not know their types.
class ArgumentsView {
 public:
  template <class Enumerator>
  explicit ArgumentsView(const Enumerator& enumerator)
      : object_(&enumerator),
        call_([](const void* object, OperandSink& sink) { (*static_cast<const Enumerator*>(object))(sink); }) {}
  void visit(OperandSink& sink) const { call_(object_, sink); }

 private:
  const void* object_;
  void (*call_)(const void*, OperandSink&);
};

}  // namespace devsan::hooks
