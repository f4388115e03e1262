#include "hooks/torch_bridge/thrown_exception.h"

#include <cxxabi.h>
#include <unwind.h>

#include <cstring>
#include <typeinfo>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/torch_bridge/meeting.h"

namespace devsan::hooks {

namespace {

// Kernels in Python that are called past the wrappers (torch.ops under FakeTensorMode, meta kernels) make no
// c10::Error: what they say passes here. So does what an operator inside them has said already. The throwing thread
// holds the GIL, since it has just asked Python for the error.
void note_python_complaint(const ThreadState& state, const std::type_info& type) noexcept {
  char buffer[1024];
  std::string_view text;
  if (const void* value = python_exception_in_flight(); value != nullptr) {
    text = exception_text(value, buffer, sizeof buffer);
  } else if (std::strcmp(type.name(), "12python_error") == 0 && python.PyGILState_Check() != 0) {
    const PythonSection section;
    text = exception_text(section.error(), buffer, sizeof buffer);  // stays valid: the section puts the error back
  }
  if (text.empty()) return;
  if (state.unhandled != nullptr && runtime.recorder->string(state.unhandled->message) == text) return;
  note_error(text);
}

[[noreturn]] void throw_wrapper(void* object, std::type_info* type, void (*destroy)(void*)) {
  ThreadState& state = thread_state();
  state.thrown = object;
  state.thrown_type = type;
  if (state.depth == 0 && !state.busy && python.minor != 0) note_python_complaint(state, *type);
  abi::__cxa_throw(object, type, destroy);
}

// Returns only where no frame catches the exception: then std::terminate follows, and no destructor runs.
_Unwind_Reason_Code raise_wrapper(_Unwind_Exception* exception) {
  const _Unwind_Reason_Code reason = _Unwind_RaiseException(exception);
  note_uncaught(thread_state());
  return reason;
}

DEVSAN_REPLACEMENTS const Replacement throw_replacements[] = {
    {reinterpret_cast<void*>(&_Unwind_RaiseException), reinterpret_cast<void*>(&raise_wrapper)},
    {reinterpret_cast<void*>(&abi::__cxa_throw), reinterpret_cast<void*>(&throw_wrapper)},
};

// pybind11::error_already_set since 2.10: the virtual table, then a shared_ptr to {type, value, traceback}.
constexpr std::ptrdiff_t kFetchedError = 8;
constexpr std::ptrdiff_t kFetchedValue = 8;

}  // namespace

const void* python_exception_in_flight() noexcept {
  const ThreadState& state = thread_state();
  if (state.thrown == nullptr || python.minor == 0) return nullptr;
  const auto* type = static_cast<const std::type_info*>(state.thrown_type);
  if (std::strcmp(type->name(), "N8pybind1117error_already_setE") != 0) return nullptr;
  const void* fetched = field<const void*>(state.thrown, kFetchedError);
  const void* value = fetched != nullptr ? field<const void*>(fetched, kFetchedValue) : nullptr;
  return value != nullptr && is_exception(value) ? value : nullptr;
}

}  // namespace devsan::hooks
