// An operator that failed while torch.compile was reading a function, told as if the function had run: its own frames
// and variables, the program's tensors in place of those that stand for them, and their devices.
//
// Where torch's objects are not as expected, what is missing stays as the thread's frames and the operands have it.
#pragma once

#include <memory>
#include <optional>

#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/snapshot/traced_call.h"
#include "hooks/inprocess/snapshot/traced_frames.h"
#include "hooks/inprocess/snapshot/traced_values.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Has the GIL as long as it lives.
class TracedFailure {
 public:
  // `innermost`: of the thread's frames.
  explicit TracedFailure(const void* innermost) noexcept;

  // Of the function that was read; null where that is not known.
  const void* innermost() const noexcept { return frames_ != nullptr ? frames_->innermost() : nullptr; }

  // Puts the program's tensors and devices in place of the operands'.
  void replace(OperandList& operands) const noexcept;
  // Gives those that the function computed their histories. Writes to the trace: for a finding that is not there yet.
  void give_histories(OperandList& operands) const noexcept;

 private:
  const PythonSection section_;
  std::optional<TracedCall> call_;
  std::optional<TracedValues> values_;
  std::unique_ptr<TracedFrames> frames_;
};

}  // namespace devsan::hooks
