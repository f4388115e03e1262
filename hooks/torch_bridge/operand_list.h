// The operands of one call, gathered for a meeting.
#pragma once

#include <ATen/core/function_schema.h>

#include <array>
#include <span>
#include <string_view>

#include "hooks/torch_bridge/operands.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// "float32", as a string of the trace; "" for what is no scalar type.
trace::StringId dtype_text(caffe2::TypeMeta type) noexcept;

// The device that torch takes it for: "cuda" means the current one.
c10::Device with_index(c10::Device device) noexcept;

class OperandList final : public OperandSink {
 public:
  // `schema` names the arguments of operators that are not wrapped.
  explicit OperandList(trace::OperatorId op, const c10::FunctionSchema* schema = nullptr) noexcept
      : op_(op), schema_(schema) {}

  void tensor(int argument, int element, const c10::TensorImpl* tensor) override;
  void generator(int argument, const at::Generator& generator) override;
  void device(int argument, c10::Device device) override;
  void storage(int argument, const at::Storage& storage) override;
  // The same of what is no argument of an operator, and goes by this name.
  void tensor(std::string_view name, const c10::TensorImpl* tensor);
  void device(std::string_view name, c10::Device device);
  // A tensor that is known by its device, its history and the expression that it is called by alone.
  void unseen(trace::DeviceSlot device, trace::LineageId lineage, trace::StringId name) noexcept;

  // What dispatch was given in its place: another tensor, and a tensor whose device is not that of its memory.
  void stand_for(std::size_t operand, const c10::TensorImpl* tensor) noexcept;
  void lie_on(std::size_t operand, trace::DeviceSlot device) noexcept;

  std::span<trace::OperandRecord> records() noexcept;
  std::span<const OperandIdentity> identities() const noexcept { return {identities_.data(), count_}; }

  // More than one device, counting everything: scalars, generators, the device argument.
  bool mixed() const noexcept { return mixed_; }
  // Dispatch hands some operand to Python code (FakeTensor, a __torch_dispatch__ subclass): its device is not its own.
  bool simulated_by_python() const noexcept { return python_key_; }
  bool requires_grad() const noexcept { return requires_grad_; }

 private:
  static constexpr std::size_t kMaxOperands = 64;
  struct Position {
    int argument;
    int element;  // -1 where the argument is no list
  };

  trace::OperandRecord* add(int argument, int element, trace::DeviceSlot device) noexcept;
  void describe(std::size_t operand, const c10::TensorImpl* tensor) noexcept;
  void call_those_from(std::size_t first, std::string_view name) noexcept;

  void name(std::size_t operand) noexcept;
  std::string_view argument_name(int argument) const noexcept;

  trace::OperatorId op_;
  const c10::FunctionSchema* schema_;
  // Each collective that comes through the dispatcher is listed, and few lists are ever read: entries are made as they
  // come, and named when it is asked for them.
  std::array<trace::OperandRecord, kMaxOperands> records_;
  std::array<OperandIdentity, kMaxOperands> identities_;
  std::array<Position, kMaxOperands> positions_;
  std::size_t count_ = 0;
  std::size_t named_ = 0;
  trace::DeviceSlot first_device_ = trace::DeviceSlot::none;
  bool mixed_ = false;
  bool python_key_ = false;
  bool requires_grad_ = false;
};

}  // namespace devsan::hooks
