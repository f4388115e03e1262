#include "hooks/inprocess/snapshot/settings.h"

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/provenance/device_slots.h"

namespace devsan::hooks {

namespace {

constexpr std::ptrdiff_t kMostSettings = 512;

// A str, what a member of an enumeration of them stands for, a number (a boolean is one), or how many a set has. Empty
// for anything else.
std::string value_in(const void* object) {
  if (is_text(object)) {
    const std::string text = text_of(object);
    if (!text.empty()) return text;
    const void* value = OwnAttributes(object)["_value_"];
    return value != nullptr && is_text(value) ? text_of(value) : std::string();
  }
  if (is_builtin(object, "set")) return std::to_string(field<std::ptrdiff_t>(object, kSetUsed));
  const auto number = integer_in(object);
  return number ? std::to_string(*number) : std::string();
}

}  // namespace

bool has_settings(const void* type) noexcept {
  return derives_from(type, "DeepSpeedZeroOptimizer_Stage3");
}

bool is_setting(std::string_view name) noexcept {
#define DEVSAN_SETTING(known) \
  if (name == known) return true;
#include "hooks/inprocess/snapshot/setting_names.def"
#undef DEVSAN_SETTING
  return false;
}

bool is_setting_of_experts(std::string_view name) noexcept {
  return name == "ep_size" || name == "num_local_experts";
}

std::string device_said(const void* value) {
  const DeviceKey told = device_in(value);
  std::string text;
  if (told != 0) {
    text = runtime.recorder->string(runtime.recorder->device_name(device_slot(told)));
  } else if (is_text(value)) {
    text = text_of(value);
  }
  return text.starts_with("cuda:") && text.size() < 16 ? text : std::string();
}

void visit_setting(std::string_view name, const void* value, SettingVisitor& visitor) {
  if (!is_dict(value)) {
    if (const std::string text = value_in(value); !text.empty()) visitor.setting(name, -1, text);
    return;
  }
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* entry = nullptr;
  for (std::ptrdiff_t k = 0; k < kMostSettings; ++k) {
    if (python.PyDict_Next(const_cast<void*>(value), &at, &key, &entry) == 0) return;
    const auto number = integer_in(key);
    const std::string text = entry != nullptr ? value_in(entry) : std::string();
    if (number && *number >= 0 && !text.empty()) visitor.setting(name, *number, text);
  }
}

}  // namespace devsan::hooks
