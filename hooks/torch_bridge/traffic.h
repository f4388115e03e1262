// What passes between the host and devices while PyTorch says nothing: copies, waits for a value, and races with copies
// that are still running. A few operators are watched for it (watched_operators.def), at any depth; every other one
// looks at one word, `attention`, which is 0 while no copy is pending.
//
// Nothing here waits, runs an operator, or calls Python.
#pragma once

#include <c10/core/TensorImpl.h>

#include <tuple>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/torch_bridge/call.h"
#include "hooks/torch_bridge/operands.h"

namespace devsan::hooks {

enum class Watch : std::uint8_t {
  none,
  copy,    // (to, from, non_blocking)
  number,  // (tensor): brings one value to the host
  wait,    // (tensor, …): brings a count to the host
  mask,    // (tensor, indices, …): does so where an index is a mask
  value,   // (tensor, …, value): takes the last one for a number
};

// An index that has to be counted: how many of its values are true makes the shape of the result.
bool is_mask_on_device(const c10::TensorImpl* index) noexcept;

// Whether a watched operator that is about to run with these arguments may pass something between the host and a
// device. One that cannot is an operator like any other.
template <Watch watch, class First, class... Rest>
inline bool may_be_traffic(const First& first, const Rest&... rest) noexcept {
  if (attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return true;
  const DeviceKey device = TensorFields::device(first.unsafeGetTensorImpl());
  if constexpr (watch == Watch::copy) {
    return [&](const at::Tensor& from, const auto&...) {
      return TensorFields::device(from.unsafeGetTensorImpl()) != device;
    }(rest...);
  } else {
    return is_cuda(device);
  }
}

// One call of a watched operator. Watched operators inside it are part of it.
class WatchedCall {
 public:
  // `nested`: another operator called this one.
  WatchedCall(Watch how, trace::OperatorId op, bool nested) noexcept;
  ~WatchedCall() { --state_.watching; }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  // After it returned.
  void copied(const at::Tensor& to, const at::Tensor& from, bool non_blocking) const noexcept;
  void took_number(const at::Tensor& tensor) const noexcept;
  void took_value(const at::Tensor& value) const noexcept;
  void waited(const at::Tensor& tensor) const noexcept;
  void indexed(const at::Tensor& tensor, const c10::List<std::optional<at::Tensor>>& indices) const noexcept;
  void indexed(const at::Tensor& tensor, const at::Tensor& mask) const noexcept;  // is_mask_on_device()

 private:
  trace::TrafficPayload* count_wait(const c10::TensorImpl* tensor, std::uint64_t bytes) const noexcept;
  void remember(const PendingCopy& copy, StreamKey stream, bool asynchronous) const noexcept;

  ThreadState& state_;
  const trace::OperatorId op_;  // the outermost one
  const bool nested_;
  const bool watched_;                 // not inside another watched operator, nor inside devsan's own work
  const std::uint64_t copies_before_;  // of a copy on real devices: CUDA's calls that the thread had copied by
};

template <Watch watch, class First, class... Rest>
void note_watched(const WatchedCall& call, const First& first, const Rest&... rest) noexcept {
  if constexpr (watch == Watch::copy) {
    call.copied(first, rest...);
  } else if constexpr (watch == Watch::number) {
    call.took_number(first);
  } else if constexpr (watch == Watch::wait) {
    call.waited(first);
  } else if constexpr (watch == Watch::value) {
    call.took_value(std::get<sizeof...(Rest) - 1>(std::tie(rest...)));
  } else {
    [&](const auto& indices, const auto&...) { call.indexed(first, indices); }(rest...);
  }
}

// An outermost operator is about to run while something needs attention: tells of a race when it uses what a pending
// copy is at work on, and which operator took the number that the host waited for; looks again at what was moved.
[[gnu::cold]] void attend(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments,
                          const void* caller) noexcept;

}  // namespace devsan::hooks
