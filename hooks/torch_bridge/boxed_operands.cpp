#include "hooks/torch_bridge/boxed_operands.h"

#include <algorithm>

namespace devsan::hooks {

namespace {

// Lists hold numbers far more often than tensors: their first entry tells.
bool holds_tensors(const c10::ArrayRef<c10::IValue> list) noexcept {
  return !list.empty() && (list.front().isTensor() || list.front().isNone());
}

}  // namespace

BoxedOperands::BoxedOperands(BoxedArguments arguments) noexcept {
  for (const c10::IValue& value : arguments) look(value);
}

bool BoxedOperands::has_storage(const c10::StorageImpl* storage) const noexcept {
  const auto end = storages.begin() + static_cast<std::ptrdiff_t>(storage_count);
  return std::find(storages.begin(), end, storage) != end;
}

bool BoxedOperands::may_have_storage(const c10::StorageImpl* storage) const noexcept {
  if (has_storage(storage)) return true;
  return has_more_storages && c10::raw::intrusive_ptr::use_count(const_cast<c10::StorageImpl*>(storage)) != 1;
}

void BoxedOperands::look(const c10::IValue& value) noexcept {
  if (value.isTensor()) {
    look_at_tensor(value.unsafeToTensorImpl());
  } else if (value.isList()) {
    const c10::ArrayRef<c10::IValue> list = value.toListRef();
    if (!holds_tensors(list)) return;
    for (const c10::IValue& element : list) {
      if (element.isTensor()) look_at_tensor(element.unsafeToTensorImpl());
    }
  } else if (value.isDevice()) {
    look_at_device(device_key(value.toDevice()));
  } else if (value.isGenerator()) {
    const at::Generator generator = value.toGenerator();
    if (generator.defined()) look_at_device(device_key(generator.device()));
  }
}

void BoxedOperands::look_at_tensor(const c10::TensorImpl* tensor) noexcept {
  look_at(seen, tensor);
  if (!tensor->is_wrapped_number()) look_at_device(TensorFields::device(tensor));
  const c10::StorageImpl* storage = TensorFields::storage_behind(tensor);
  if (storage == nullptr) return;
  if (storage_count < storages.size()) {
    storages[storage_count++] = storage;
  } else {
    has_more_storages = true;
  }
}

void BoxedOperands::look_at_device(DeviceKey device) noexcept {
  if (device == 0) return;
  if (first_device_ == 0) first_device_ = device;
  differ = differ || device != first_device_;
}

void enumerate_boxed(OperandSink& sink, BoxedArguments arguments) {
  int argument = 0;
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) {
      enumerate_one(sink, argument, -1, value.unsafeToTensorImpl());
    } else if (value.isList() && holds_tensors(value.toListRef())) {
      int element = 0;
      for (const c10::IValue& entry : value.toListRef()) {
        if (entry.isTensor()) enumerate_one(sink, argument, element, entry.unsafeToTensorImpl());
        ++element;
      }
    } else if (value.isGenerator()) {
      enumerate(sink, argument, std::optional<at::Generator>(value.toGenerator()));
    } else if (value.isDevice()) {
      enumerate(sink, argument, value.toDevice());
    } else if (value.isStorage()) {
      enumerate(sink, argument, value.toStorage());
    }
    ++argument;
  }
}

}  // namespace devsan::hooks
