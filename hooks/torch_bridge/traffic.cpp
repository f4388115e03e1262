#include "hooks/torch_bridge/traffic.h"

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/schema.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/torch_bridge/event.h"
#include "hooks/torch_bridge/look_after_move.h"
#include "hooks/torch_bridge/operand_list.h"
#include "hooks/torch_bridge/races.h"
#include "hooks/torch_bridge/tensor_memory.h"

namespace devsan::hooks {

namespace {

// All that these do is to bring their only operand's value to the host.
bool asks_for_value(trace::OperatorId op) noexcept {
  const std::string_view name = name_of(op);
  return name == "aten::item" || name == "aten::is_nonzero";
}

void settle_number(ThreadState& state, trace::OperatorId op) noexcept {
  trace::TrafficPayload* number = state.number;
  state.number = nullptr;
  attention.fetch_and(~kNumberTaken, std::memory_order_relaxed);
  const void* thread = python_thread(state);
  if (thread == nullptr) return;
  const void* frame = innermost_frame(current_frame(thread));
  if (frame != nullptr && frame == state.number_frame && instruction_address(frame) == state.number_address) {
    trace::Recorder::set_taker(number, op);
  }
}

// Simulated devices make no calls of CUDA's.
std::uint64_t copies_made() noexcept {
  return devices_are_simulated() ? 0 : runtime.host->device_calls->last_copy().number;
}

}  // namespace

bool is_mask_on_device(const c10::TensorImpl* index) noexcept {
  const caffe2::TypeMeta type = TensorFields::dtype(index);
  return is_cuda(index) && (type == caffe2::TypeMeta::Make<bool>() || type == caffe2::TypeMeta::Make<std::uint8_t>());
}

WatchedCall::WatchedCall(Watch how, trace::OperatorId op, bool nested) noexcept
    : state_(thread_state()),
      op_(nested ? running_operator(state_) : op),
      nested_(nested),
      watched_(state_.watching++ == 0 && !state_.busy),
      copies_before_(watched_ && how == Watch::copy ? copies_made() : 0) {}

// On real devices the call of CUDA's that made the copy says on which stream it is, and whether it may be running
// still. Where none was seen, waits are not seen either.
void WatchedCall::remember(const PendingCopy& copy, StreamKey stream, bool asynchronous) const noexcept {
  if (!devices_are_simulated()) {
    const CrossingCopy made = runtime.host->device_calls->last_copy();
    const bool seen = made.number != copies_before_;
    if (seen && made.pending) return pending_copies.queue({made.device, made.stream}, copy);
    if (seen) return;
    asynchronous = false;
  }
  if (asynchronous) {
    pending_copies.queue(stream, copy);
  } else {
    pending_copies.host_saw_stream(stream);
  }
}

void WatchedCall::copied(const at::Tensor& to, const at::Tensor& from, bool non_blocking) const noexcept {
  const c10::TensorImpl* target = implementation(to);
  const c10::TensorImpl* source = implementation(from);
  if (!watched_) return;
  const bool to_host = is_cpu(target) && is_cuda(source);
  const CopyEnds ends{target, source, nested_};
  if (!to_host && !(is_cuda(target) && is_cpu(source))) return meet_on_host(state_, op_, ends);
  const std::uint64_t bytes = bytes_of(source);
  if (bytes == 0 || bytes_of(target) == 0) return;
  const c10::TensorImpl* host = to_host ? target : source;
  const c10::TensorImpl* device = to_host ? source : target;
  const StreamKey stream = current_stream(device);

  const bool asked = non_blocking && can_be_asynchronous(schema_of(op_));
  const bool pinned = non_blocking && is_pinned(host);
  Event event;
  event.kind = asked && !pinned ? trace::TrafficKind::unpinned_copy : trace::TrafficKind::copy;
  event.op = op_;
  event.site = place(state_);
  event.bytes = bytes;
  event.flags =
      static_cast<std::uint8_t>((is_foreign(event.site) ? trace::kForeignPlace : 0) | (to_host ? trace::kToHost : 0));
  if (event.kind == trace::TrafficKind::unpinned_copy) {
    if (const auto other = find_copy(TensorFields::storage(host), Copied::pinned)) event.cause = other->site;
  }
  const PendingCopy copy{memory_of(host), memory_of(device), to_host, is_foreign(event.site), event.site.id,
                         bytes,           begin_of(host)};
  meet_pending(state_, op_, copy, stream, ends);
  count_event(state_, event, [&](OperandList& operands) {
    ends.list(operands);
    if (pinned && !operands.records().empty()) {
      operands.records()[to_host ? 0 : operands.records().size() - 1].flags |= trace::kPinned;
    }
  });
  remember(copy, stream, non_blocking && pinned);
}

trace::TrafficPayload* WatchedCall::count_wait(const c10::TensorImpl* tensor, std::uint64_t bytes) const noexcept {
  pending_copies.host_saw_stream(current_stream(tensor));
  Event event;
  event.kind = trace::TrafficKind::wait;
  event.op = op_;
  event.site = place(state_);
  event.bytes = bytes;
  event.flags = is_foreign(event.site) ? trace::kForeignPlace : 0;
  return count_event(state_, event, [&](OperandList& operands) {
    if (!nested_ || asks_for_value(op_)) operands.tensor(0, -1, tensor);
  });
}

void WatchedCall::waited(const at::Tensor& tensor) const noexcept {
  if (watched_ && is_cuda(implementation(tensor))) count_wait(implementation(tensor), 0);
}

void WatchedCall::indexed(const at::Tensor& tensor,
                          const c10::List<std::optional<at::Tensor>>& indices) const noexcept {
  if (!watched_ || !is_cuda(implementation(tensor))) return;
  for (const auto& element : indices) {
    const c10::IValue& value = element.get();
    if (!value.isTensor() || !is_mask_on_device(value.unsafeToTensorImpl())) continue;
    count_wait(value.unsafeToTensorImpl(), 0);
    return;
  }
}

void WatchedCall::indexed(const at::Tensor& tensor, const at::Tensor& mask) const noexcept {
  if (watched_ && is_cuda(implementation(tensor))) count_wait(implementation(mask), 0);
}

// A number that the program asks for by itself is no operator's doing. Whether one takes it shows at the next operator:
// PyTorch's bindings convert arguments right before the call, in the same instruction of the same frame.
void WatchedCall::took_number(const at::Tensor& tensor) const noexcept {
  constexpr std::uint32_t kLooks = 8;
  if (!watched_ || !is_cuda(implementation(tensor))) return;
  trace::TrafficPayload* number =
      count_wait(implementation(tensor), TensorFields::dtype(implementation(tensor)).itemsize());
  if (number == nullptr || number->repeats >= kLooks || number->taker != trace::OperatorId::none) return;
  const void* thread = python_thread(state_);
  if (name_of(op_) != "aten::item" || thread == nullptr) return;
  state_.number_frame = innermost_frame(current_frame(thread));
  if (state_.number_frame == nullptr) return;
  state_.number_address = instruction_address(state_.number_frame);
  state_.number = number;
  attention.fetch_or(kNumberTaken, std::memory_order_relaxed);
}

// In CUDA's kernel of the operator, which calls `.item()` on it.
void WatchedCall::took_value(const at::Tensor& value) const noexcept {
  const c10::TensorImpl* number = implementation(value);
  if (!watched_ || nested_ || !is_cuda(number)) return;
  trace::TrafficPayload* counted = count_wait(number, TensorFields::dtype(number).itemsize());
  if (counted != nullptr && counted->taker == trace::OperatorId::none) trace::Recorder::set_taker(counted, op_);
}

void attend(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments, const void* caller) noexcept {
  if (state.busy || state.gives_away) return;
  if (state.number != nullptr && name_of(op) != "aten::item") settle_number(state, op);
  const std::uint64_t wanted = attention.load(std::memory_order_relaxed);
  if ((wanted & kLookWanted) != 0) look_after_move(state, caller);
  if ((wanted & ~(kNumberTaken | kLookWanted)) == 0) return;
  meet_operands(state, op, arguments, caller);
}

}  // namespace devsan::hooks
