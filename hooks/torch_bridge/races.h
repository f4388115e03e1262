// Who uses memory that an asynchronous copy is still at work on: another copy, an operator, or code that is none.
#pragma once

#include <c10/core/TensorImpl.h>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/torch_bridge/call.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// The two ends of a copy.
struct CopyEnds {
  const c10::TensorImpl* to;
  const c10::TensorImpl* from;
  bool nested;  // `from.to(…)` and its kin made the copy: their only tensor is what they copy

  // As the operands of the operator that is told of.
  void list(OperandList& operands) const noexcept {
    if (!nested) operands.tensor(0, -1, to);
    operands.tensor(nested ? 0 : 1, -1, from);
  }
};

// A copy between the host and a device is in order with what is queued on its own stream.
void meet_pending(ThreadState& state, trace::OperatorId op, const PendingCopy& copy, StreamKey stream,
                  const CopyEnds& ends) noexcept;
// On one side of the host or of a device; only conversions and what may return a view are not looked at already.
void meet_on_host(ThreadState& state, trace::OperatorId op, const CopyEnds& ends) noexcept;
// An outermost operator is about to run.
void meet_operands(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments,
                   const void* caller) noexcept;

// NumPy, DLPack or the like is about to get the address of `tensor`.
void note_outside_reader(const at::Tensor& tensor) noexcept;

// Code that is no operator has touched memory of the host while a copy of it was pending, by an address that was given
// away. Safe in the signal handler of that.
void note_host_touch(const void* address, bool writes) noexcept;

// Something that is no operator reads memory of the host. Only where `attention` says that a copy is pending.
void note_memory_reader(const void* begin, std::uint64_t bytes, trace::OperatorId op) noexcept;

}  // namespace devsan::hooks
