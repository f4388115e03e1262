// Which of the operands that met is the odd one: the one to be moved, made elsewhere, or brought to the host. Shared by
// the process that sees the meeting and by the report, so that both name the same operand. Allocates nothing.
//
// A few operators read one argument on the host, whatever device the others are on. Where they complain of that, the
// message names the argument, and that is the odd one. A gradient that a parameter is given is odd beside it.
//
// PyTorch's message does not settle it: it compares the operands with the first one, in the order of the schema, and so
// it may call the one tensor that is right "different from other tensors". What counts is what people mean:
//
//  1. A generator beside anything else is the odd one. A factory's `device=`, or the tensor to be filled, says where
//     the numbers are wanted; the generator is the accessory.
//  2. A `device=` argument is a statement of what is wanted, and is never odd itself.
//  3. Python numbers are never odd, and 0-dim CPU tensors are not while the others disagree without them: PyTorch lets
//     them join operators on any device. Where they are all that differs (stack and cat make no exception for them, and
//     a note reports them) they are odd.
//     Indices on the CPU are never odd where what they index is on an accelerator: PyTorch brings them over.
//  4. An operator in place writes to its target, so the target settles the device where the others are single numbers:
//     a CPU tensor that takes in a 0-dim tensor on an accelerator is meant to be on the CPU (offloaded gradients,
//     running statistics), and the number should have come to the host. Not if that number is a parameter or buffer:
//     these were moved on purpose, and the target was forgotten.
//  5. Operands of one list (`tensors[0]`, `tensors[1]`, …) come from one loop, so a strict minority among them was
//     treated differently and is odd, whatever its device.
//  6. Otherwise an accelerator is wanted rather than the CPU, and the CPU rather than meta, even by a majority: tensors
//     begin their lives on the CPU (or meta), and most bugs are that one was never moved. Module weights that nobody
//     moved outnumber the input that was.
//  7. Among several accelerators the one with most operands is wanted; of equals, the one that holds a parameter or
//     buffer (activations go to the weights), then the one with something else than a loss's `target` (labels go to
//     what was computed), then the one that the function is told to work on, by a torch.device among its arguments, or
//     that the weights of the module are on which it works for, or was given everything else on; then the target of an
//     operator in place, then the first operand's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "trace/file_layout.h"

namespace devsan::trace {

enum class DeviceClass : std::uint8_t { none, meta, cpu, accelerator };

constexpr DeviceClass classify_device(std::string_view name) {
  const std::string_view type = name.substr(0, name.find(':'));
  if (type.empty()) return DeviceClass::none;
  if (type == "meta") return DeviceClass::meta;
  return type == "cpu" ? DeviceClass::cpu : DeviceClass::accelerator;
}

// What torch says of a tensor that is to become an array of NumPy, and is not on the host. Programs and libraries try
// that, and bring the tensor over when it is refused: where they catch this, it is no mistake.
inline constexpr std::string_view kNumpyRefused = "device type tensor to numpy";

constexpr bool refused_by_numpy(std::string_view message) {
  return message.find(kNumpyRefused) != message.npos;
}

// What torch says of a collective on tensors of a device that no backend of the process group is for: "… device type
// cpu".
inline constexpr std::string_view kGroupRefused = "No backend type associated with device type ";

// What torch says of a tensor that is to be pinned, and is not on the host.
inline constexpr std::string_view kPinningRefused = "only dense CPU tensors can be pinned";

// Whether a message says that an argument should have been on the CPU: "'lengths' argument should be a 1D CPU int64
// tensor, but got 1D cuda:0 Long tensor"; or that it cannot become an array of NumPy as it is.
constexpr bool wants_host(std::string_view message) {
  if (refused_by_numpy(message) || message.find(kPinningRefused) != message.npos) return true;
  for (const std::string_view but : {", but got ", ", but it's on ", ", but found "}) {
    const std::size_t at = message.find(but);
    if (at == message.npos) continue;
    const std::string_view wanted = message.substr(0, at);
    const std::string_view got = message.substr(at + but.size());
    const bool host = wanted.find(" CPU ") != wanted.npos || wanted.ends_with(" cpu") || wanted.ends_with(" CPU");
    return host && wanted.find("cuda") == wanted.npos && got.find("cuda") != got.npos;
  }
  return false;
}

// What torch says of `parameter.grad = gradient`: there the parameter, `self`, settles the device.
inline constexpr std::string_view kGradientRefused = "attempting to assign a gradient";

// "aten::mul_.Tensor" -> "mul_"
constexpr std::string_view operator_base_name(std::string_view qualified) {
  if (const auto colons = qualified.find("::"); colons != qualified.npos) qualified.remove_prefix(colons + 2);
  return qualified.substr(0, qualified.find('.'));
}

// "mul_", "_foreach_add_", "__iand__"; not "__and__".
constexpr bool works_in_place(std::string_view qualified) {
  const std::string_view base = operator_base_name(qualified);
  if (base.starts_with("__")) return base.starts_with("__i");
  return base.ends_with('_');
}

// The answer for one meeting. `odd` is asked for each operand.
class OddOperands {
 public:
  // `text_of(StringId)` gives an argument's name, `device_of(DeviceSlot)` a device's, both as std::string_view.
  template <class TextOf, class DeviceOf>
  OddOperands(std::string_view op, std::string_view message, std::span<const OperandRecord> operands, TextOf&& text_of,
              DeviceOf&& device_of);

  bool odd(const OperandRecord& operand) const {
    if (named_ != StringId::none) return operand.argument == named_;
    if (operand.device == DeviceSlot::none || (operand.flags & (kWrappedNumber | kDeviceArgument)) != 0) return false;
    if (is_spared_index(operand)) return false;
    const bool generator = (operand.flags & kGenerator) != 0;
    if (only_generators_) return generator && (operand.device != wanted_ || wanted_ == DeviceSlot::none);
    return !generator && operand.device != wanted_ && !(spare_cpu_scalars_ && is_cpu_scalar(operand));
  }

  DeviceSlot wanted() const { return wanted_; }

 private:
  static constexpr std::size_t kDevices = 256;  // every value of a DeviceSlot, valid or not
  static constexpr std::size_t kIndices = 8;    // more dimensions than that nobody indexes at once

  struct Tally {
    std::array<std::uint16_t, kDevices> operands{};
    std::array<bool, kDevices> holds_weights{};
    std::array<bool, kDevices> home{};
    std::array<bool, kDevices> holds_computed{};  // anything but what a loss compares with
    std::size_t distinct = 0;

    void add(const OperandRecord& operand, std::string_view argument) {
      if (argument != "target") holds_computed[static_cast<std::size_t>(operand.device)] = true;
      auto& count = operands[static_cast<std::size_t>(operand.device)];
      if (count == 0) ++distinct;
      if (count < UINT16_MAX) ++count;
      if (is_weight(operand)) holds_weights[static_cast<std::size_t>(operand.device)] = true;
      if ((operand.flags & kAtHome) != 0) home[static_cast<std::size_t>(operand.device)] = true;
    }
  };

  static bool is_weight(const OperandRecord& operand) {
    return operand.name_kind == NameKind::parameter || operand.name_kind == NameKind::buffer;
  }
  // A tensor that has a say: neither a number, nor a generator, nor a `device=`.
  static bool is_tensor(const OperandRecord& operand) {
    return operand.device != DeviceSlot::none && (operand.flags & (kWrappedNumber | kDeviceArgument | kGenerator)) == 0;
  }
  bool is_cpu_scalar(const OperandRecord& operand) const {
    return operand.dims == 0 && classes_[static_cast<std::size_t>(operand.device)] == DeviceClass::cpu;
  }
  DeviceClass class_of(const OperandRecord& operand) const {
    return classes_[static_cast<std::size_t>(operand.device)];
  }
  bool is_spared_index(const OperandRecord& operand) const {
    if (class_of(operand) != DeviceClass::cpu) return false;
    const auto end = spared_indices_.begin() + static_cast<std::ptrdiff_t>(spared_count_);
    return std::find(spared_indices_.begin(), end, operand.argument) != end;
  }
  template <class TextOf>
  void spare_indices(std::span<const OperandRecord> operands, TextOf& text_of);

  template <class TextOf>
  bool settle_by_message(std::span<const OperandRecord> operands, std::string_view message, TextOf& text_of);
  template <class TextOf>
  bool settle_by_parameter(std::span<const OperandRecord> operands, TextOf& text_of);
  bool settle_by_device_argument(std::span<const OperandRecord> operands);
  bool settle_generators(std::span<const OperandRecord> operands);
  bool settle_by_target(std::span<const OperandRecord> operands, const OperandRecord* target);
  template <class TextOf>
  bool settle_by_list(std::span<const OperandRecord> operands, TextOf& text_of);
  void settle_by_class(std::span<const OperandRecord> operands, const Tally& tally, const OperandRecord* target);

  StringId named_ = StringId::none;  // the argument that a message says is not on the host
  DeviceSlot wanted_ = DeviceSlot::none;
  bool only_generators_ = false;
  bool spare_cpu_scalars_ = false;
  std::array<DeviceClass, kDevices> classes_{};
  std::array<StringId, kIndices> spared_indices_{};
  std::size_t spared_count_ = 0;
};

template <class TextOf>
void OddOperands::spare_indices(std::span<const OperandRecord> operands, TextOf& text_of) {
  const auto indexed = std::find_if(operands.begin(), operands.end(), [&](const OperandRecord& operand) {
    return is_tensor(operand) && text_of(operand.argument) == "self";
  });
  if (indexed == operands.end() || class_of(*indexed) != DeviceClass::accelerator) return;
  for (const OperandRecord& operand : operands) {
    if (!text_of(operand.argument).starts_with("indices[") || spared_count_ == kIndices) continue;
    spared_indices_[spared_count_++] = operand.argument;
  }
}

template <class TextOf>
bool OddOperands::settle_by_message(std::span<const OperandRecord> operands, std::string_view message,
                                    TextOf& text_of) {
  if (message.find(kGradientRefused) != message.npos) return settle_by_parameter(operands, text_of);
  if (!wants_host(message)) return false;
  for (const OperandRecord& operand : operands) {
    const std::string_view argument = text_of(operand.argument);
    if (!is_tensor(operand) || class_of(operand) != DeviceClass::accelerator || argument.empty()) continue;
    const bool pinned = message.find(kPinningRefused) != message.npos;  // that message names no argument
    if (!pinned && message.find(argument) == message.npos) continue;
    named_ = operand.argument;
    return true;
  }
  return false;
}

template <class TextOf>
bool OddOperands::settle_by_parameter(std::span<const OperandRecord> operands, TextOf& text_of) {
  for (const OperandRecord& operand : operands) {
    if (text_of(operand.argument) == "self") wanted_ = operand.device;
  }
  return wanted_ != DeviceSlot::none;
}

inline bool OddOperands::settle_by_device_argument(std::span<const OperandRecord> operands) {
  for (const OperandRecord& operand : operands) {
    if ((operand.flags & kDeviceArgument) != 0 && operand.device != DeviceSlot::none) {
      wanted_ = operand.device;
      return true;
    }
  }
  return false;
}

// A generator without any tensor beside it met the default device, which no operand stands for: then it is odd, too.
inline bool OddOperands::settle_generators(std::span<const OperandRecord> operands) {
  DeviceSlot beside = wanted_;
  for (const OperandRecord& operand : operands) {
    if (is_tensor(operand) && beside == DeviceSlot::none) beside = operand.device;
  }
  for (const OperandRecord& operand : operands) {
    if ((operand.flags & kGenerator) == 0 || operand.device == beside) continue;
    only_generators_ = true;
    wanted_ = beside;
  }
  return only_generators_;
}

inline bool OddOperands::settle_by_target(std::span<const OperandRecord> operands, const OperandRecord* target) {
  if (target == nullptr || class_of(*target) != DeviceClass::cpu) return false;
  for (const OperandRecord& operand : operands) {
    if (!is_tensor(operand) || operand.device == target->device) continue;
    if (operand.dims != 0 || is_weight(operand)) return false;
  }
  wanted_ = target->device;
  return true;
}

// The operands of a list follow each other; the first list whose members disagree decides.
template <class TextOf>
bool OddOperands::settle_by_list(std::span<const OperandRecord> operands, TextOf& text_of) {
  const auto list_of = [&](const OperandRecord& operand) {
    const std::string_view argument = text_of(operand.argument);
    const auto bracket = argument.find('[');
    return bracket == argument.npos ? std::string_view() : argument.substr(0, bracket);
  };
  for (std::size_t begin = 0, end = 0; begin < operands.size(); begin = end) {
    const std::string_view list = list_of(operands[begin]);
    Tally peers;
    std::size_t count = 0;
    for (end = begin; end < operands.size() && list_of(operands[end]) == list; ++end) {
      if (!is_tensor(operands[end])) continue;
      peers.add(operands[end], text_of(operands[end].argument));
      ++count;
    }
    if (list.empty() || peers.distinct < 2) continue;
    for (const OperandRecord& operand : operands.subspan(begin, end - begin)) {
      if (2 * std::size_t{peers.operands[static_cast<std::size_t>(operand.device)]} <= count) continue;
      wanted_ = operand.device;
      return true;
    }
  }
  return false;
}

inline void OddOperands::settle_by_class(std::span<const OperandRecord> operands, const Tally& tally,
                                         const OperandRecord* target) {
  const auto better = [&](const OperandRecord& a, DeviceSlot b_slot) {
    const auto at = static_cast<std::size_t>(a.device);
    const auto bt = static_cast<std::size_t>(b_slot);
    if (classes_[at] != classes_[bt]) return classes_[at] > classes_[bt];
    if (tally.operands[at] != tally.operands[bt]) return tally.operands[at] > tally.operands[bt];
    if (tally.holds_weights[at] != tally.holds_weights[bt]) return tally.holds_weights[at];
    if (tally.holds_computed[at] != tally.holds_computed[bt]) return tally.holds_computed[at];
    if (tally.home[at] != tally.home[bt]) return tally.home[at];
    return target != nullptr && a.device == target->device && b_slot != target->device;
  };
  for (const OperandRecord& operand : operands) {
    if (is_tensor(operand) && (wanted_ == DeviceSlot::none || better(operand, wanted_))) wanted_ = operand.device;
  }
}

template <class TextOf, class DeviceOf>
OddOperands::OddOperands(std::string_view op, std::string_view message, std::span<const OperandRecord> operands,
                         TextOf&& text_of, DeviceOf&& device_of) {
  const OperandRecord* target = nullptr;
  Tally all;
  Tally without_cpu_scalars;
  for (const OperandRecord& operand : operands) {
    classes_[static_cast<std::size_t>(operand.device)] = classify_device(device_of(operand.device));
  }
  spare_indices(operands, text_of);
  for (const OperandRecord& operand : operands) {
    if (!is_tensor(operand) || is_spared_index(operand)) continue;
    const std::string_view argument = text_of(operand.argument);
    if (target == nullptr && works_in_place(op) && (argument == "self" || argument.starts_with("self["))) {
      target = &operand;
    }
    all.add(operand, argument);
    if (!is_cpu_scalar(operand) || target == &operand) without_cpu_scalars.add(operand, argument);
  }

  if (settle_by_message(operands, message, text_of)) return;
  if (settle_by_device_argument(operands)) {
    settle_generators(operands);
  } else if (all.distinct < 2) {
    if (!settle_generators(operands)) settle_by_class(operands, all, target);
  } else {
    // The tensors disagree among themselves, so a generator is not what it is about.
    spare_cpu_scalars_ = without_cpu_scalars.distinct >= 2;
    if (settle_by_target(operands, target) || settle_by_list(operands, text_of)) return;
    settle_by_class(operands, spare_cpu_scalars_ ? without_cpu_scalars : all, target);
  }
}

}  // namespace devsan::trace
