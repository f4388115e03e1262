// One call of a wrapped operator that no other wrapped operator made, from its start to its return or throw.
#pragma once

#include <c10/core/TensorImpl.h>

#include <atomic>
#include <cstdint>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/torch_bridge/operands.h"

namespace devsan::hooks {

class OperandList;
struct FrameMemo;

// Whether an operator is running around this one. An operator can run Python (subclasses, modes, kernels written in
// Python), and that Python calls operators of its own: they are outermost ones again. They show by an interpreter frame
// that is not the outer operator's.
inline bool is_nested(const ThreadState& state) noexcept {
  return state.depth != 0 && *state.outer.frame_word == state.outer.frame;
}

class OutermostCall {
 public:
  // `makes_values`: the operator returns new tensors, which get the calling site as their origin.
  DEVSAN_OFTEN_RUN OutermostCall(trace::OperatorId op, const Operands& seen, bool makes_values) noexcept;
  OutermostCall(const OutermostCall&) = delete;
  OutermostCall& operator=(const OutermostCall&) = delete;

  // The operator returned `result` as a value: its storage gets an origin if it is new. False where that is not sure,
  // and made_unless_operand() has to tell.
  DEVSAN_OFTEN_RUN bool made(const c10::TensorImpl* result) noexcept;

  // The same for a result that shares its storage with something: with an operand, or with what autograd keeps.
  [[gnu::cold]] void made_unless_operand(const c10::TensorImpl* result, const ArgumentsView& arguments) noexcept;

  // made() and returned() of an operator that returned this tensor alone, in the usual case. False, and neither is
  // done, where its origin is not sure or operands lie on two devices: then finish() has to.
  DEVSAN_OFTEN_RUN bool finished(const c10::TensorImpl* result) noexcept;
  [[gnu::cold]] void finish(const c10::TensorImpl* result, const ArgumentsView& arguments, const void* caller) noexcept;

  // The operator was called to have its operand elsewhere, and may have left it where it is.
  void left_operand(Copied how, const c10::TensorImpl* result) noexcept;

  // The operator returned a copy of its operand, which made() has given an origin: the calls that led to it are written
  // down with that.
  void took_copy(const c10::TensorImpl* result) noexcept;

  // A tensor took a storage over (Tensor::set_). Where torch puts a tensor together that it has read from a file or
  // from another process, no operator has made that storage: it gets an origin now.
  [[gnu::cold]] void took_storage(const c10::TensorImpl* tensor) noexcept;

  // torch copied a storage as a whole, to one that it has made for that.
  void copied(const c10::StorageImpl* to, const c10::StorageImpl* from) noexcept;

  // Operands lie on two devices, and PyTorch took them.
  [[gnu::cold]] void allowed(const ArgumentsView& arguments, const void* caller) noexcept;
  [[gnu::cold]] void allowed(OperandList& operands, const void* caller) noexcept;  // listed before the call

  // `result`: all that the operator returned is this tensor.
  DEVSAN_OFTEN_RUN void returned(const c10::TensorImpl* result) noexcept;
  DEVSAN_OFTEN_RUN void returned() noexcept;

  // An exception passes. `caller` is the address that the wrapper returns to.
  [[gnu::cold]] void thrown(const ArgumentsView& arguments, const void* caller) noexcept;
  [[gnu::cold]] void thrown(OperandList& operands,
                            const void* caller) noexcept;  // listed before the call; empty where not known

 private:
  bool note_made(const c10::TensorImpl* result) noexcept;
  [[gnu::cold]] bool note_without_storage(const c10::TensorImpl* result) noexcept;
  bool note_storage(const c10::StorageImpl* storage, const c10::TensorImpl* result) noexcept;
  void note_returned(const c10::TensorImpl* result) noexcept;
  DEVSAN_OFTEN_RUN void note_nodes() noexcept;
  void leave() noexcept;
  DEVSAN_OFTEN_RUN void give_origin(std::atomic<std::uint64_t>* vacancy, const c10::StorageImpl* storage,
                                    const c10::TensorImpl* result) noexcept;
  DEVSAN_OFTEN_RUN void tag(std::atomic<std::uint64_t>* vacancy, const c10::StorageImpl* storage,
                            trace::LineageId parent, DeviceKey device, trace::How how) noexcept;
  template <class Arguments>
  void note_allowed(Arguments& arguments, const void* caller) noexcept;
  template <class Arguments>
  void note_thrown(Arguments& arguments, const void* caller) noexcept;

  ThreadState& state_;
  const Operands& seen_;
  OuterCall around_;  // the operator that runs around the Python that made this call; only where there is one
  FrameMemo* memo_;   // of the innermost frame; null where the caches keep nothing for it
  const trace::OperatorId op_;
  const bool whole_site_;  // the site has the user's frame; otherwise the innermost one alone, until it is needed
};

}  // namespace devsan::hooks
