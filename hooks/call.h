// One call of a wrapped operator that no other wrapped operator made, from its start to its return or throw.
#pragma once

#include <c10/core/TensorImpl.h>

#include "hooks/operands.h"
#include "hooks/python_frames.h"
#include "hooks/thread_state.h"

namespace devsan::hooks {

class OperandList;

// Whether an operator is running around this one. An operator can run Python (subclasses, modes, kernels written in
// Python), and that Python calls operators of its own: they are outermost ones again. They show by an interpreter frame
// that is not the outer operator's.
inline bool is_nested(const ThreadState& state) noexcept {
  return state.depth != 0 && *state.outer.frame_word == state.outer.frame;
}

class OutermostCall {
 public:
  // `makes_values`: the operator returns new tensors, which get the calling site as their origin.
  OutermostCall(trace::OperatorId op, const Operands& seen, bool makes_values) noexcept;
  OutermostCall(const OutermostCall&) = delete;
  OutermostCall& operator=(const OutermostCall&) = delete;

  // The operator made `result`: its storage gets an origin unless it had one, or is that of the first operand.
  void made(const c10::TensorImpl* result) noexcept;

  // Operands lie on two devices, and PyTorch took them.
  void allowed(const ArgumentsView& arguments, const void* caller) noexcept;
  void allowed(OperandList& operands, const void* caller) noexcept;  // listed before the call

  void returned() noexcept;

  // An exception passes. `caller` is the address that the wrapper returns to.
  void thrown(const ArgumentsView& arguments, const void* caller) noexcept;
  void thrown(OperandList& operands, const void* caller) noexcept;  // listed before the call; empty where not known

 private:
  template <class Arguments>
  void note_allowed(Arguments& arguments, const void* caller) noexcept;
  template <class Arguments>
  void note_thrown(Arguments& arguments, const void* caller) noexcept;

  ThreadState& state_;
  const Operands& seen_;
  OuterCall around_;  // the operator that runs around the Python that made this call; only where there is one
  const trace::OperatorId op_;
  const bool whole_site_;  // the site has the user's frame; otherwise the innermost one alone, until it is needed
};

}  // namespace devsan::hooks
