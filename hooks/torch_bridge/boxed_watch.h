// One boxed call of an operator that is watched for hidden traffic (watched_operators.def): what WatchedCall is to a
// wrapper.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "hooks/torch_bridge/boxed_operands.h"
#include "hooks/torch_bridge/traffic.h"

namespace devsan::hooks {

class BoxedWatch {
 public:
  // Before the call counts as running. A kernel may take its arguments off the stack before the call returns: those
  // that are asked about afterwards are held until this ends.
  BoxedWatch(Watch how, trace::OperatorId op, BoxedArguments arguments) noexcept;
  BoxedWatch(const BoxedWatch&) = delete;
  BoxedWatch& operator=(const BoxedWatch&) = delete;

  // The operator has returned, and counts as running no more.
  void returned() const noexcept;

 private:
  const Watch how_;
  std::optional<WatchedCall> call_;  // none where the operator is not watched
  at::Tensor tensor_;
  at::Tensor other_;  // of a copy, its source; of an index, the mask
  bool non_blocking_ = false;
};

}  // namespace devsan::hooks
