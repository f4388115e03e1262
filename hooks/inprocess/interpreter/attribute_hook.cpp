#include "hooks/inprocess/interpreter/attribute_hook.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"

namespace devsan::hooks {

namespace {

using Vectorcall = void* (*)(void* function, void* const* arguments, std::size_t count, void* keywords);
using SetVectorcall = void (*)(void* function, Vectorcall entry);

// PyFunctionObject::vectorcall of CPython 3.10 and 3.11, which have no function to set it, and func_version behind it:
// 0 keeps 3.11 from remembering the function where it is called.
constexpr std::ptrdiff_t kEntry = 120;
constexpr std::ptrdiff_t kVersion = 128;
constexpr std::size_t kAttributeArguments = 3;  // self, name, value

constinit Vectorcall call_function = nullptr;  // _PyFunction_Vectorcall
constinit AttributeObserver attribute_observer = nullptr;

void* observed_call(void* function, void* const* arguments, std::size_t count, void* keywords) {
  constexpr std::size_t kOffsetFlag = std::size_t{1} << 63;  // PY_VECTORCALL_ARGUMENTS_OFFSET
  if ((count & ~kOffsetFlag) == kAttributeArguments && keywords == nullptr) {
    attribute_observer(arguments[0], arguments[1], arguments[2]);
  }
  return call_function(function, arguments, count, keywords);
}

bool set_entry(void* function) noexcept {
  if (auto* set = reinterpret_cast<SetVectorcall>(::dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall"))) {
    set(function, observed_call);
    return true;
  }
  if (python.minor > 11 || field<Vectorcall>(function, kEntry) != call_function) return false;
  auto* entry = reinterpret_cast<std::atomic<Vectorcall>*>(static_cast<char*>(function) + kEntry);
  entry->store(observed_call, std::memory_order_release);
  if (python.minor == 11) std::memset(static_cast<char*>(function) + kVersion, 0, sizeof(std::uint32_t));
  return true;
}

}  // namespace

AttributeHook hook_module_attributes(AttributeObserver observer) noexcept {
  if (attribute_observer != nullptr) return AttributeHook::installed;
  const OwnAttributes module = attributes_of_module("torch.nn.modules.module");
  const void* type = module ? module["Module"] : nullptr;
  if (type == nullptr || !is_type(type)) return AttributeHook::not_yet;
  void* function = dict_entry(field<const void*>(type, kTypeDict), "__setattr__");
  call_function = reinterpret_cast<Vectorcall>(::dlsym(RTLD_DEFAULT, "_PyFunction_Vectorcall"));
  if (function == nullptr || !is_function(function) || call_function == nullptr) return AttributeHook::impossible;
  attribute_observer = observer;
  if (set_entry(function)) return AttributeHook::installed;
  attribute_observer = nullptr;
  return AttributeHook::impossible;
}

}  // namespace devsan::hooks
