#include "hooks/torch_bridge/boxed_call.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/provenance/callers.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/lineage.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/torch_bridge/boxed_operands.h"
#include "hooks/torch_bridge/boxed_watch.h"
#include "hooks/torch_bridge/call.h"
#include "hooks/torch_bridge/call_origin.h"
#include "hooks/torch_bridge/collectives.h"
#include "hooks/torch_bridge/group_calls.h"
#include "hooks/torch_bridge/schema_operators.h"
#include "hooks/torch_bridge/storage_release.h"
#include "hooks/torch_bridge/storage_search.h"
#include "hooks/torch_bridge/thread_start.h"
#include "hooks/torch_bridge/torch_function.h"
#include "hooks/torch_bridge/traffic.h"

namespace devsan::hooks {

// Functions of torch as plain functions of the same calling convention. Weak: without them such calls stay unseen.
// c10::Dispatcher::runRecordFunction(RecordFunction&, reference_wrapper<const FunctionSchema>, DispatchKey,
// DispatchKeySet[, ArrayRef<const IValue>])
void run_record_function(at::RecordFunction& guard, const c10::FunctionSchema& schema, std::uint16_t key, std::uint64_t keys, const c10::IValue* arguments, std::size_t count) __asm__(
    "_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17"
    "reference_wrapperIKNS_14FunctionSchemaEENS_11DispatchKeyENS_14"
    "DispatchKeySetENS_8ArrayRefIKNS_6IValueEEE") DEVSAN_TORCH_FUNCTION;
void run_record_function_without_arguments(at::RecordFunction& guard, const c10::FunctionSchema& schema, std::uint16_t key, std::uint64_t keys) __asm__(
    "_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIKNS_"
    "14FunctionSchemaEENS_11DispatchKeyENS_14DispatchKeySetE") DEVSAN_TORCH_FUNCTION;
// std::optional<at::StepCallbacks> at::getStepCallbacksUnlessEmpty(at::RecordScope), as the calling convention has it:
// the result's place comes first, and is returned. So the wrapper can go on to it by a jump.
void* get_step_callbacks(void* result, at::RecordScope scope) __asm__(
    "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE") DEVSAN_TORCH_FUNCTION;

namespace {

// How a call came to be seen.
enum class Way : std::uint8_t { dispatcher, python };

class BoxedCall {
 public:
  // `guard`: an address that no other call in progress has.
  BoxedCall(Way way, const void* guard, const c10::FunctionSchema& schema, const SchemaOperator& op,
            BoxedArguments arguments) noexcept;
  BoxedCall(const BoxedCall&) = delete;
  BoxedCall& operator=(const BoxedCall&) = delete;

  bool is_guarded_by(const void* guard) const noexcept { return guard_ == guard; }
  // An operator is called inside. Python's way leads through `__torch_function__` after this has begun: the operands
  // are those that it hands on.
  void calls(trace::OperatorId op) noexcept { handed_on_ = handed_on_ || (way_ == Way::python && op == op_.id); }
  bool gave(const ThreadState& state, const OperandList& operands) const noexcept;
  void returned(c10::ArrayRef<c10::IValue> results) noexcept;
  void thrown() noexcept;
  bool is_left_by_exception() const noexcept { return std::uncaught_exceptions() > exceptions_; }

 private:
  void made(const c10::IValue& result) noexcept;
  void made(const c10::TensorImpl* result) noexcept;
  const void* caller() const noexcept;

  const void* const guard_;
  const Way way_;
  bool handed_on_ = false;
  const SchemaOperator& op_;
  const std::size_t results_;  // how many entries of the stack are results
  const bool computes_;
  const int exceptions_ = std::uncaught_exceptions();
  BoxedOperands operands_;
  trace::LineageId parent_ = trace::LineageId::none;
  // Only where operands lie on several devices, and of collectives: they may be gone at the end.
  std::unique_ptr<OperandList> listed_;
  const void* const frame_around_;  // the Python frame of the operator around this one
  BoxedWatch watch_;
  OutermostCall call_;
  const void* frame_;
};

bool has_result_worth_a_note(const c10::FunctionSchema& schema) noexcept {
  if (schema.returns().empty()) return true;
  for (const c10::Argument& result : schema.returns()) {
    switch (result.type()->kind()) {
      case c10::TypeKind::BoolType:
      case c10::TypeKind::IntType:
      case c10::TypeKind::FloatType:
      case c10::TypeKind::NumberType:
        break;
      default:
        return true;
    }
  }
  return false;
}

BoxedCall::BoxedCall(Way way, const void* guard, const c10::FunctionSchema& schema, const SchemaOperator& op,
                     BoxedArguments arguments) noexcept
    : guard_(guard),
      way_(way),
      op_(op),
      results_(schema.returns().size()),
      computes_(has_result_worth_a_note(schema)),
      operands_(arguments),
      frame_around_(thread_state().depth != 0 ? thread_state().outer.frame : nullptr),
      watch_(op.watch, op.id, arguments),
      call_(op.id, operands_.seen, true) {
  ThreadState& state = thread_state();
  frame_ = state.outer.frame;
  if (attention.load(std::memory_order_relaxed) != 0) {
    const auto enumerate_all = [&](OperandSink& sink) { enumerate_boxed(sink, arguments); };
    attend(state, op.id, ArgumentsView(enumerate_all), caller());
  }
  if (operands_.seen.first != nullptr) {
    if (const c10::StorageImpl* storage = TensorFields::storage_behind(operands_.seen.first)) {
      parent_ = origin_table().find(storage);
    }
  }
  // A group refuses tensors that are all on one device, too.
  if (operands_.differ || op.collective) {
    listed_.reset(new (std::nothrow) OperandList(op.id, &schema));
    if (listed_ != nullptr) enumerate_boxed(*listed_, arguments);
  }
  // ATen's operators are one with those that they call.
  if (!op.wrapped) state.outer.frame_word = &no_frame;
}

bool BoxedCall::gave(const ThreadState& state, const OperandList& operands) const noexcept {
  if (op_.wrapped || listed_ == nullptr || operands_.has_more_storages || state.outer.frame != frame_) return false;
  return all_given(operands, [this](const c10::StorageImpl* storage) { return operands_.has_storage(storage); });
}

void BoxedCall::made(const c10::IValue& result) noexcept {
  if (result.isTensor()) return made(result.unsafeToTensorImpl());
  if (!result.isList()) return;
  for (const c10::IValue& element : result.toListRef()) {
    if (!element.isTensor()) return;
    made(element.unsafeToTensorImpl());
  }
}

// As OutermostCall::made, but the operands may be gone.
void BoxedCall::made(const c10::TensorImpl* result) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage_behind(result);
  if (storage == nullptr || operands_.may_have_storage(storage) || !tells_when_it_dies(storage)) return;
  const ThreadState& state = thread_state();
  const trace::SiteId site = state.outer.site.id;
  // An operator of the custom operator's own kernel has tagged it, in C++ behind the same line.
  if (const trace::LineageId known = origin_table().find(storage); known != trace::LineageId::none) {
    const trace::LineageNode inner = runtime.recorder->lineage(known);
    if (inner.site != site || inner.op == op_.id) return;
    origin_table().erase(storage);
  }
  const DeviceKey device = TensorFields::device(result);
  trace::How how = trace::How::created;
  trace::LineageId parent = trace::LineageId::none;
  if (operands_.seen.first != nullptr && (device == operands_.seen.device || !op_.factory)) {
    how = device == operands_.seen.device ? trace::How::derived : trace::How::moved;
    parent = parent_;
  }
  auto* vacancy = origin_table().vacancy(storage);
  const std::uint32_t calls = how == trace::How::derived ? 0 : callers(state);
  const NodeWords node = node_words(parent, site, op_.id, device_slot(device), how, calls);
  const trace::LineageId id = lineage_id(state.caches, node);
  if (vacancy != nullptr && id != trace::LineageId::none) OriginTable::fill(vacancy, storage, id);
}

const void* BoxedCall::caller() const noexcept {
  const ThreadState& state = thread_state();
  if (way_ == Way::dispatcher) return caller_of(state, frame_, frame_around_);
  return state.outer.python != nullptr ? runtime.python_bindings_begin.load() : nullptr;
}

void BoxedCall::returned(c10::ArrayRef<c10::IValue> results) noexcept {
  if (runtime.has_origins) {
    // The stack may hold other values below the results.
    for (const c10::IValue& result : results.slice(results.size() - std::min(results.size(), results_))) made(result);
  }
  if (operands_.seen.mixed && computes_ && !handed_on_ && listed_ != nullptr) call_.allowed(*listed_, nullptr);
  call_.returned();
  watch_.returned();
}

void BoxedCall::thrown() noexcept {
  OperandList unknown(op_.id);
  call_.thrown(listed_ != nullptr ? *listed_ : unknown, caller());
}

// The calls in progress on one thread. Deeper ones are not seen.
class BoxedCalls {
 public:
  // The guard has our callback, so it will end the call that begins now.
  void is_armed(const at::RecordFunction& guard) noexcept { armed_ = &guard; }

  void begin(const at::RecordFunction& guard, const c10::FunctionSchema& schema, BoxedArguments arguments) noexcept {
    if (std::exchange(armed_, nullptr) != &guard || arguments.size() < schema.arguments().size()) return;
    // TorchScript's stack holds other values below the arguments.
    const BoxedArguments own = arguments.slice(arguments.size() - schema.arguments().size());
    ThreadState& state = thread_state();
    const bool collective = is_collective(schema);
    const bool part_of_outer = count_ == kMostCalls || is_part_of_outer(state);
    if (part_of_outer && !collective) return;
    if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
    const SchemaOperator& op = schema_operator(schema);
    if (op.id == trace::OperatorId::none) return;
    if (!part_of_outer) begin(Way::dispatcher, &guard, schema, op, own);
    if (collective) collective_begins(guard, op, own);
  }

  void begin(Way way, const void* guard, const c10::FunctionSchema& schema, BoxedArguments arguments) noexcept {
    ThreadState& state = thread_state();
    if (count_ == kMostCalls || is_part_of_outer(state)) return;
    if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
    const SchemaOperator& op = schema_operator(schema);
    if (op.id != trace::OperatorId::none) begin(way, guard, schema, op, arguments);
  }

  void begin(Way way, const void* guard, const c10::FunctionSchema& schema, const SchemaOperator& op,
             BoxedArguments arguments) noexcept {
    if (BoxedCall* around = innermost(); around != nullptr) around->calls(op.id);
    new (&slots_[count_]) BoxedCall(way, guard, schema, op, arguments);
    ++count_;
  }

  void end(const at::RecordFunction& guard) noexcept {
    collective_returns(guard);
    end(&guard, [&](BoxedCall& call) {
      if (call.is_left_by_exception()) {
        call.thrown();
      } else {
        call.returned(guard.outputs());
      }
    });
  }

  template <class Outcome>
  void end(const void* guard, Outcome outcome) noexcept {
    BoxedCall* call = innermost();
    if (call == nullptr || !call->is_guarded_by(guard)) return;
    --count_;
    outcome(*call);
    call->~BoxedCall();
  }

  BoxedCall* innermost() noexcept {
    return count_ != 0 ? std::launder(reinterpret_cast<BoxedCall*>(&slots_[count_ - 1])) : nullptr;
  }

 private:
  static constexpr std::size_t kMostCalls = 16;
  struct alignas(BoxedCall) Slot {
    std::byte bytes[sizeof(BoxedCall)];
  };
  Slot slots_[kMostCalls];
  std::size_t count_;
  const at::RecordFunction* armed_;
};

thread_local constinit BoxedCalls boxed_calls{};

std::unique_ptr<at::ObserverContext> start_callback(const at::RecordFunction& guard) {
  boxed_calls.is_armed(guard);
  return nullptr;
}

void end_callback(const at::RecordFunction& guard, at::ObserverContext*) {
  boxed_calls.end(guard);
}

[[gnu::noinline]] void* with_own_callback(void* result, at::RecordScope scope) {
  get_step_callbacks(result, scope);
  if (scope != at::RecordScope::FUNCTION || is_of_group_call(thread_state())) return result;
  auto& callbacks = *static_cast<std::optional<at::StepCallbacks>*>(result);
  if (!callbacks.has_value()) callbacks.emplace(at::RecordFunction::currentThreadId(), scope);
  callbacks->callbacks_.push_back({start_callback, end_callback});
  callbacks->needs_inputs_ = true;
  callbacks->needs_outputs_ = true;
  return result;
}

// Once there is a demand (boxed_demand.cpp), every call through the dispatcher passes here, also those that operators
// make of each other.
void* step_callbacks_wrapper(void* result, at::RecordScope scope) {
  if (is_nested(thread_state())) [[likely]]
    return get_step_callbacks(result, scope);
  return with_own_callback(result, scope);
}

void run_record_function_wrapper(at::RecordFunction& guard, const c10::FunctionSchema& schema, std::uint16_t key,
                                 std::uint64_t keys, const c10::IValue* arguments, std::size_t count) {
  run_record_function(guard, schema, key, keys, arguments, count);
  if (!is_nested(thread_state())) boxed_calls.begin(guard, schema, BoxedArguments(arguments, count));
}

void run_record_function_without_arguments_wrapper(at::RecordFunction& guard, const c10::FunctionSchema& schema,
                                                   std::uint16_t key, std::uint64_t keys) {
  run_record_function_without_arguments(guard, schema, key, keys);
  if (!is_nested(thread_state())) boxed_calls.begin(guard, schema, {});
}

DEVSAN_REPLACEMENTS const Replacement boxed_replacements[] = {
    {.real = reinterpret_cast<void*>(&get_step_callbacks),
     .wrapper = reinterpret_cast<void*>(&step_callbacks_wrapper),
     .on_demand = true},
    {reinterpret_cast<void*>(&run_record_function), reinterpret_cast<void*>(&run_record_function_wrapper)},
    {reinterpret_cast<void*>(&run_record_function_without_arguments),
     reinterpret_cast<void*>(&run_record_function_without_arguments_wrapper)},
};

}  // namespace

bool came_with_boxed_call(const ThreadState& state, const OperandList& operands) noexcept {
  const BoxedCall* call = boxed_calls.innermost();
  return (call != nullptr && call->gave(state, operands)) || came_with_group_call(state, operands);
}

BoxedPythonCall::BoxedPythonCall(const c10::FunctionSchema& schema, BoxedArguments arguments) noexcept {
  if (!is_nested(thread_state())) boxed_calls.begin(Way::python, this, schema, arguments);
}

void BoxedPythonCall::returned(c10::ArrayRef<c10::IValue> results) noexcept {
  boxed_calls.end(this, [&](BoxedCall& call) { call.returned(results); });
}

void BoxedPythonCall::failed() noexcept {
  boxed_calls.end(this, [](BoxedCall& call) {
    thread_state().thrown = nullptr;  // what C++ threw on the way has been caught, and freed
    call.thrown();
  });
}

}  // namespace devsan::hooks
