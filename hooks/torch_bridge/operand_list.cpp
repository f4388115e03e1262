#include "hooks/torch_bridge/operand_list.h"

#include <c10/core/GeneratorImpl.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/events/schema.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/large_page.h"

namespace devsan::hooks {

namespace {

const char* dtype_name(c10::ScalarType type) noexcept {
  try {
    switch (type) {
      case c10::ScalarType::Byte:
        return "uint8";
      case c10::ScalarType::Char:
        return "int8";
      case c10::ScalarType::Short:
        return "int16";
      case c10::ScalarType::Int:
        return "int32";
      case c10::ScalarType::Long:
        return "int64";
      case c10::ScalarType::Half:
        return "float16";
      case c10::ScalarType::Float:
        return "float32";
      case c10::ScalarType::Double:
        return "float64";
      case c10::ScalarType::ComplexHalf:
        return "complex32";
      case c10::ScalarType::ComplexFloat:
        return "complex64";
      case c10::ScalarType::ComplexDouble:
        return "complex128";
      case c10::ScalarType::Bool:
        return "bool";
      case c10::ScalarType::BFloat16:
        return "bfloat16";
      default:
        return c10::toString(type);
    }
  } catch (...) {  // a type that torch has no name for
    return "";
  }
}

template <class Slot>
const void* python_object(const Slot& slot) noexcept {
  if constexpr (requires { slot.load_pyobj(); }) {
    return slot.load_pyobj();
  } else {
    return slot._unchecked_untagged_pyobj();  // until 2.9
  }
}

std::uint64_t storage_size(const c10::StorageImpl* storage) noexcept {
  try {
    return storage != nullptr ? storage->nbytes() : 0;
  } catch (...) {  // symbolic
    return 0;
  }
}

}  // namespace

c10::Device with_index(c10::Device device) noexcept {
  if (device.has_index() || device.is_cpu() || device.is_meta()) return device;
  try {
    return c10::impl::VirtualGuardImpl(device.type()).getDevice();
  } catch (...) {  // no such backend here
    return c10::Device(device.type(), 0);
  }
}

trace::StringId dtype_text(caffe2::TypeMeta type) noexcept {
  // By torch's number of the type.
  static constinit std::array<std::atomic<trace::StringId>, 256> known{};
  if (!type.isScalarType()) return runtime.recorder->intern_string("");
  auto& text = known[static_cast<std::uint8_t>(type.toScalarType())];
  trace::StringId id = text.load(std::memory_order_relaxed);
  if (id != trace::StringId::none) return id;
  id = runtime.recorder->intern_string(dtype_name(type.toScalarType()));
  text.store(id, std::memory_order_relaxed);
  return id;
}

std::string_view OperandList::argument_name(int argument) const noexcept {
  if (const OperatorText* op = operator_text(op_)) return hooks::argument_name(op->schema, argument);
  if (schema_ == nullptr || static_cast<std::size_t>(argument) >= schema_->arguments().size()) return {};
  return schema_->arguments()[static_cast<std::size_t>(argument)].name();
}

trace::OperandRecord* OperandList::add(int argument, int element, trace::DeviceSlot device) noexcept {
  if (first_device_ == trace::DeviceSlot::none) first_device_ = device;
  if (device != first_device_) mixed_ = true;
  if (count_ == kMaxOperands) return nullptr;
  positions_[count_] = {argument, element};
  identities_[count_] = {};
  trace::OperandRecord& record = records_[count_++] = {};
  record.device = device;
  return &record;
}

void OperandList::name(std::size_t operand) noexcept {
  const Position at = positions_[operand];
  char text[160];
  const std::string_view name = argument_name(at.argument);
  const int length = at.element < 0
                         ? std::snprintf(text, sizeof text, "%.*s", int(name.size()), name.data())
                         : std::snprintf(text, sizeof text, "%.*s[%d]", int(name.size()), name.data(), at.element);
  records_[operand].argument = runtime.recorder->intern_string({text, std::min(sizeof text - 1, std::size_t(length))});
}

std::span<trace::OperandRecord> OperandList::records() noexcept {
  for (; named_ < count_; ++named_) name(named_);
  return {records_.data(), count_};
}

void OperandList::tensor(int argument, int element, const c10::TensorImpl* tensor) {
  python_key_ = python_key_ || tensor->key_set().has(c10::DispatchKey::Python);
  requires_grad_ = requires_grad_ || tensor->requires_grad();
  if (add(argument, element, device_slot(TensorFields::device(tensor))) == nullptr) return;
  describe(count_ - 1, tensor);
}

void OperandList::describe(std::size_t operand, const c10::TensorImpl* tensor) noexcept {
  trace::OperandRecord& record = records_[operand];
  identities_[operand] = {python_object(*tensor->pyobj_slot()), tensor, nullptr};
  record.dtype = dtype_text(TensorFields::dtype(tensor));
  if (tensor->is_wrapped_number()) record.flags |= trace::kWrappedNumber;
  if (tensor->requires_grad()) record.flags |= trace::kRequiresGrad;
  if (!TensorFields::symbolic(tensor)) {
    const c10::IntArrayRef sizes = TensorFields::sizes(tensor);
    record.dims = static_cast<std::uint8_t>(std::min<std::size_t>(sizes.size(), 255));
    std::copy_n(sizes.begin(), std::min(sizes.size(), trace::kMaxShownDims), record.sizes.begin());
  }
  const c10::StorageImpl* storage = TensorFields::storage_behind(tensor);
  if (storage != nullptr) record.lineage = origin_table().find(storage);
  record.storage_bytes = storage_size(storage);
}

void OperandList::generator(int argument, const at::Generator& generator) {
  trace::OperandRecord* record = add(argument, -1, device_slot(device_key(generator.device())));
  if (record == nullptr) return;
  record->flags = trace::kGenerator;
  identities_[count_ - 1] = {generator.pyobj(), nullptr, generator.unsafeGetGeneratorImpl()};
}

void OperandList::device(int argument, c10::Device device) {
  trace::OperandRecord* record = add(argument, -1, device_slot(device_key(with_index(device))));
  if (record != nullptr) record->flags = trace::kDeviceArgument;
}

void OperandList::storage(int argument, const at::Storage& storage) {
  trace::OperandRecord* record = add(argument, -1, device_slot(device_key(storage.device())));
  if (record == nullptr) return;
  record->flags = trace::kUnseen;
  record->dims = 1;  // it is no single number
  record->lineage = origin_table().find(storage.unsafeGetStorageImpl());
  record->storage_bytes = storage_size(storage.unsafeGetStorageImpl());
}

void OperandList::call_those_from(std::size_t first, std::string_view name) noexcept {
  for (trace::OperandRecord& record : records().subspan(first)) {
    record.argument = runtime.recorder->intern_string(name);
  }
}

void OperandList::tensor(std::string_view name, const c10::TensorImpl* tensor) {
  const std::size_t before = count_;
  this->tensor(0, -1, tensor);
  call_those_from(before, name);
}

void OperandList::device(std::string_view name, c10::Device device) {
  const std::size_t before = count_;
  this->device(0, device);
  call_those_from(before, name);
}

void OperandList::stand_for(std::size_t operand, const c10::TensorImpl* tensor) noexcept {
  describe(operand, tensor);
  lie_on(operand, device_slot(TensorFields::device(tensor)));
}

void OperandList::lie_on(std::size_t operand, trace::DeviceSlot device) noexcept {
  records_[operand].device = device;
  first_device_ = records_.front().device;
  mixed_ = std::ranges::any_of(records(), [this](const auto& one) { return one.device != first_device_; });
}

void OperandList::unseen(trace::DeviceSlot device, trace::LineageId lineage, trace::StringId name) noexcept {
  trace::OperandRecord* record = add(0, -1, device);
  if (record == nullptr) return;
  record->flags = trace::kUnseen;
  record->lineage = lineage;
  record->name = name;
  record->name_kind = trace::NameKind::temporary;
}

}  // namespace devsan::hooks
