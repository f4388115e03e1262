// The interpreter's state of the calling thread, without a call into the interpreter where that can be avoided.
#pragma once

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/interpreter/python_api.h"

namespace devsan::hooks {

// The calling thread's PyThreadState; null where it has none.
inline const void* python_thread(const ThreadState& state) noexcept {
  if (state.main_python != nullptr) [[likely]]
    return state.main_python;
  return runtime.has_python ? python.PyGILState_GetThisThreadState() : nullptr;
}

}  // namespace devsan::hooks
