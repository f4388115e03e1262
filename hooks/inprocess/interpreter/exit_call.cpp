#include "hooks/inprocess/interpreter/exit_call.h"

#include <atomic>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_api.h"

namespace devsan::hooks {

namespace {

std::atomic<void (*)()> wanted{nullptr};

// A PyCFunction.
void* run(void*, void*) {
  if (auto* function = wanted.load(std::memory_order_relaxed)) function();
  python.Py_IncRef(const_cast<void*>(python.none));
  return const_cast<void*>(python.none);
}

struct Method {  // PyMethodDef
  const char* name;
  void* (*function)(void*, void*);
  int flags;
  const char* doc;
};
constexpr int kNoArguments = 4;  // METH_NOARGS
Method method{"devsan_at_exit", &run, kNoArguments, nullptr};

void drop(void* object) noexcept {
  if (object != nullptr) python.Py_DecRef(object);
}

// On the main thread, with the GIL. A program that has put something of its own in the place of atexit.register is left
// alone.
int register_now(void*) noexcept {
  if (!interpreter_lives()) return 0;
  const PythonSection section;
  void* module = python.PyImport_ImportModule("atexit");
  void* registers = module != nullptr ? python.PyObject_GetAttrString(module, "register") : nullptr;
  if (registers != nullptr && is_builtin(registers, "builtin_function_or_method")) {
    void* handler = python.PyCFunction_NewEx(&method, nullptr, nullptr);
    drop(handler != nullptr ? python.PyObject_CallFunctionObjArgs(registers, handler, nullptr) : nullptr);
    drop(handler);
  }
  drop(registers);
  drop(module);
  return 0;
}

}  // namespace

void call_at_interpreter_exit(void (*function)()) noexcept {
  if (!python.can_call_at_exit()) return;
  wanted.store(function, std::memory_order_relaxed);
  python.Py_AddPendingCall(register_now, nullptr);
}

}  // namespace devsan::hooks
