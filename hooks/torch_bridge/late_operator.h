// A function that is recorded like an operator, and is none of PyTorch's.
#pragma once

#include <atomic>

#include "hooks/inprocess/common/runtime.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Numbered when it is first needed; two threads that come at once get one number.
struct LateOperator {
  const char* name;
  std::atomic<trace::OperatorId> number{trace::OperatorId::none};

  trace::OperatorId id() noexcept {
    if (number.load(std::memory_order_relaxed) == trace::OperatorId::none) {
      number.store(runtime.recorder->add_operator(name), std::memory_order_relaxed);
    }
    return number.load(std::memory_order_relaxed);
  }
};

}  // namespace devsan::hooks
