#include "hooks/torch_bridge/group_calls.h"

#if __has_include(<torch/csrc/distributed/c10d/ProcessGroup.hpp>)
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/torch_bridge/backward.h"
#include "hooks/torch_bridge/call.h"
#include "hooks/torch_bridge/call_origin.h"
#include "hooks/torch_bridge/collectives.h"
#include "hooks/torch_bridge/event.h"
#include "hooks/torch_bridge/operand_list.h"
#include "hooks/torch_bridge/schema_operators.h"
#include "hooks/torch_bridge/storage_search.h"
#include "hooks/torch_bridge/thread_start.h"
#include "hooks/torch_bridge/torch_function.h"
#include "hooks/torch_bridge/traffic.h"

namespace devsan::hooks {

// The virtual table of c10d::ProcessGroup.
extern void* process_group_table[] __asm__("_ZTVN4c10d12ProcessGroupE") DEVSAN_TORCH_FUNCTION;

namespace {

using Group = c10d::ProcessGroup;

// The operator that a function of a group calls.
class GroupOperator {
 public:
  explicit constexpr GroupOperator(const char* name) noexcept : name_(name) {}

  // Null where the torch has no such operator, or the trace no room for it.
  const SchemaOperator* find() noexcept {
    const SchemaOperator* const known = op_.load(std::memory_order_acquire);
    return known != nullptr ? known : find_in_torch();
  }
  // Once it has been found.
  const c10::FunctionSchema& schema() const noexcept { return *schema_.load(std::memory_order_relaxed); }

 private:
  [[gnu::noinline, gnu::cold]] const SchemaOperator* find_in_torch() noexcept;

  const char* const name_;
  std::atomic<const c10::FunctionSchema*> schema_{nullptr};
  std::atomic<const SchemaOperator*> op_{nullptr};
};

const SchemaOperator* GroupOperator::find_in_torch() noexcept {
  ThreadState& state = thread_state();
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
  try {
    const Busy busy(state);
    const auto found = c10::Dispatcher::singleton().findSchema({name_, ""});
    if (!found.has_value()) return nullptr;
    const SchemaOperator& op = schema_operator(found->schema());
    if (op.id == trace::OperatorId::none) return nullptr;
    schema_.store(&found->schema(), std::memory_order_relaxed);
    op_.store(&op, std::memory_order_release);
    return &op;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

// What a BoxedCall is to a call through the dispatcher. The arguments are there until the call has returned.
class GroupCall {
 public:
  GroupCall(const GroupOperator& name, const SchemaOperator& op, const Operands& seen, ArgumentsView arguments,
            const Group* group, const CollectiveSizes& sizes, int peer) noexcept;
  // An exception passes where returned() has not been called.
  ~GroupCall() {
    if (!has_returned_) [[unlikely]]
      thrown();
  }
  GroupCall(const GroupCall&) = delete;
  GroupCall& operator=(const GroupCall&) = delete;

  void returned(const c10d::Work* work) noexcept;
  bool is_dispatched_now() noexcept { return !std::exchange(is_dispatched_, true); }
  bool gave(const ThreadState& state, const OperandList& operands) const noexcept;

 private:
  void leave() noexcept { state_.group_call = around_; }
  const void* caller() const noexcept { return caller_of(state_, frame_, frame_around_); }
  [[gnu::noinline, gnu::cold]] void allowed() noexcept;
  [[gnu::noinline, gnu::cold]] void thrown() noexcept;

  ThreadState& state_;
  const GroupOperator& name_;
  const SchemaOperator& op_;
  const Operands& seen_;
  const ArgumentsView arguments_;
  GroupCall* const around_;
  const void* const frame_around_;  // the Python frame of the operator around this one
  const void* frame_ = nullptr;
  bool is_dispatched_ = false;
  bool has_returned_ = false;
  std::optional<OutermostCall> call_;  // none where the collective is a part of the operator around it
  EnteredCollective collective_;
};

GroupCall::GroupCall(const GroupOperator& name, const SchemaOperator& op, const Operands& seen, ArgumentsView arguments,
                     const Group* group, const CollectiveSizes& sizes, int peer) noexcept
    : state_(thread_state()),
      name_(name),
      op_(op),
      seen_(seen),
      arguments_(arguments),
      around_(state_.group_call),
      frame_around_(state_.depth != 0 ? state_.outer.frame : nullptr) {
  CallSite site;
  if (is_part_of_outer(state_)) [[unlikely]] {
    if (state_.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state_);
    site = place(state_);
  } else {
    call_.emplace(op.id, seen, true);
    frame_ = state_.outer.frame;
    site = state_.outer.site;
    if (site.id == trace::SiteId::none) site = place(state_);
    if (attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
      attend(state_, op.id, arguments_, caller());
    if (sizes.makes_tensor) {
      is_dispatched_ = true;  // as a part of this call, like the making of its tensor
    } else {
      state_.outer.frame_word = &no_frame;
    }
  }
  state_.group_call = this;
  collective_.begin(state_, group, op, sizes, peer, site);
}

void GroupCall::returned(const c10d::Work* work) noexcept {
  has_returned_ = true;
  collective_.returned(work);
  leave();
  if (!call_.has_value()) return;
  if (seen_.mixed) [[unlikely]]
    allowed();
  call_->returned();
}

void GroupCall::allowed() noexcept {
  OperandList operands(op_.id, &name_.schema());
  arguments_.visit(operands);
  call_->allowed(operands, nullptr);
}

void GroupCall::thrown() noexcept {
  collective_.failed();
  leave();
  if (!call_.has_value()) return;
  OperandList operands(op_.id, &name_.schema());
  arguments_.visit(operands);
  call_->thrown(operands, caller());
}

bool GroupCall::gave(const ThreadState& state, const OperandList& operands) const noexcept {
  if (!call_.has_value() || state.outer.frame != frame_) return false;
  return all_given(operands, [this](const c10::StorageImpl* storage) {
    StorageSearch search(storage);
    arguments_.visit(search);
    return search.found;
  });
}

namespace {

// Where barrier() is going to make the tensor that it gives to its operator.
DeviceKey device_of_barrier(const Group& group, const c10d::BarrierOptions& options) noexcept {
  if (options.device.has_value()) return device_key(with_index(*options.device));
  const bool is_nccl = group.getBackendType() == Group::BackendType::NCCL;
  return device_key(with_index(is_nccl ? c10::DeviceType::CUDA : c10::DeviceType::CPU));
}

// What one argument of a group's function tells: a tensor, a list of tensors, or a list of a list for each rank.
// Dispatch takes no notice of the last, and neither does what compares devices.
class ReadArguments {
 public:
  ReadArguments(const Group& group, bool has_peer) noexcept : group_(group), has_peer_(has_peer) {}

  Operands seen;
  CollectiveSizes sizes;
  int peer = -1;

  void read(const at::Tensor& tensor) noexcept {
    look(seen, tensor);
    sizes.add(tensor);
  }
  void read(const std::vector<at::Tensor>& tensors) noexcept {
    look(seen, at::TensorList(tensors));
    sizes.add(tensors);
  }
  void read(const std::vector<std::vector<at::Tensor>>& lists) noexcept { sizes.add(lists); }
  void read(const c10d::AllreduceOptions& options) noexcept {
    if (options.sparseIndices.has_value()) read(*options.sparseIndices);
  }
  void read(const c10d::BarrierOptions& options) noexcept {
    sizes.add_element(device_of_barrier(group_, options), caffe2::TypeMeta::Make<std::uint8_t>());
  }
  void read(int rank) noexcept {
    if (std::exchange(has_peer_, false)) peer = rank;
  }
  template <class T>
  void read(const T&) noexcept {}

 private:
  const Group& group_;
  bool has_peer_;
};

inline void enumerate_argument(OperandSink& sink, int place, const at::Tensor& tensor) {
  enumerate(sink, place, tensor);
}
inline void enumerate_argument(OperandSink& sink, int place, const std::vector<at::Tensor>& tensors) {
  enumerate(sink, place, at::TensorList(tensors));
}
inline void enumerate_argument(OperandSink& sink, int, const c10d::AllreduceOptions& options) {
  constexpr int kSparseIndices = 3;  // of the operator
  enumerate(sink, kSparseIndices, options.sparseIndices);
}
template <class T>
inline void enumerate_argument(OperandSink&, int, const T&) {}

// `Name` has the operator, and a tag of its own.
template <auto Method, class Name>
struct GroupFunction;

template <class Result, class... A, Result (Group::*Method)(A...), class Name>
struct GroupFunction<Method, Name> {
  // A member function is called as a plain one that is given the object first, after the place of the result.
  inline static Result (*real)(Group*, A...) = nullptr;
  inline static constinit GroupOperator op{Name::op()};

  static Result wrapper(Group* group, A... arguments) {
    const SchemaOperator* const known = is_nested(thread_state()) ? nullptr : op.find();
    if (known == nullptr) [[unlikely]]
      return real(group, arguments...);
    ReadArguments read(*group, known->peer_at >= 0);
    (read.read(arguments), ...);
    const auto enumerate_all = [&](OperandSink& sink) {
      int place = 0;
      (enumerate_argument(sink, place++, arguments), ...);
    };
    GroupCall call(op, *known, read.seen, ArgumentsView(enumerate_all), group, read.sizes, read.peer);
    Result work = real(group, arguments...);
    call.returned(work.get());
    return work;
  }
};

// A pointer to a virtual function is its offset in the virtual table, plus 1, and what is added to the object. The
// table begins with two words that are no functions.
template <class Function>
void** slot_of(Function function) noexcept {
  static_assert(sizeof function == 2 * sizeof(std::ptrdiff_t));
  const auto offset = std::bit_cast<std::array<std::ptrdiff_t, 2>>(function)[0] - 1;
  return process_group_table + 2 + offset / static_cast<std::ptrdiff_t>(sizeof(void*));
}

class FoundFunctions {
 public:
  FoundFunctions() noexcept {
    if (process_group_table == nullptr) return;
#define DEVSAN_GROUP_FUNCTION(name, old_name, operator_name) \
  add<Group>([]<class G>(std::type_identity<G>) {            \
    struct Name {                                            \
      static constexpr auto op() { return operator_name; }   \
    };                                                       \
    if constexpr (requires { &G::name; }) {                  \
      return GroupFunction<&G::name, Name>();                \
    } else if constexpr (requires { &G::old_name; }) {       \
      return GroupFunction<&G::old_name, Name>();            \
    }                                                        \
  });
#include "hooks/torch_bridge/group_functions.def"
#undef DEVSAN_GROUP_FUNCTION
  }

  std::span<const TableEntry> entries() const noexcept {
    return {entries_.data(), count_};
  }

 private:
  template <class G, class Choose>
  void add(Choose choose) noexcept {
    using Function = decltype(choose(std::type_identity<G>()));
    if constexpr (!std::is_void_v<Function>) add_function(Function());
  }
  template <auto Method, class Name>
  void add_function(GroupFunction<Method, Name>) noexcept {
    using Function = GroupFunction<Method, Name>;
    void** const slot = slot_of(Method);
    Function::real = reinterpret_cast<decltype(Function::real)>(*slot);
    entries_[count_++] = {slot, reinterpret_cast<void*>(&Function::wrapper)};
  }

  static constexpr std::size_t kFunctions = 0
#define DEVSAN_GROUP_FUNCTION(name, old_name, operator_name) +1
#include "hooks/torch_bridge/group_functions.def"
#undef DEVSAN_GROUP_FUNCTION
      ;
  std::array<TableEntry, kFunctions> entries_{};
  std::size_t count_ = 0;
};

}  // namespace

std::span<const TableEntry> group_functions() noexcept {
  static const FoundFunctions found;
  return found.entries();
}

bool is_of_group_call(const ThreadState& state) noexcept {
  return state.group_call != nullptr && state.group_call->is_dispatched_now();
}

bool came_with_group_call(const ThreadState& state, const OperandList& operands) noexcept {
  return state.group_call != nullptr && state.group_call->gave(state, operands);
}

}  // namespace devsan::hooks

#else

namespace devsan::hooks {

std::span<const TableEntry> group_functions() noexcept {
  return {};
}
bool is_of_group_call(const ThreadState&) noexcept {
  return false;
}
bool came_with_group_call(const ThreadState&, const OperandList&) noexcept {
  return false;
}

}  // namespace devsan::hooks

#endif
