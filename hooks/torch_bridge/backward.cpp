#include "hooks/torch_bridge/backward.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hooks/inprocess/bridge/memory_samples.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/holder_search.h"
#include "hooks/inprocess/events/moves.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/events/peak_memory.h"
#include "hooks/inprocess/events/placements.h"
#include "hooks/inprocess/events/silence.h"
#include "hooks/inprocess/events/step_times.h"
#include "hooks/inprocess/events/stop.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/torch_bridge/call.h"
#include "hooks/torch_bridge/live_memory.h"
#include "hooks/torch_bridge/meeting.h"
#include "hooks/torch_bridge/thread_start.h"
#include "hooks/torch_bridge/torch_function.h"

namespace devsan::hooks {

namespace {

// The sites of the newest forward operators by autograd sequence number, which counts per thread. Two words an entry,
// the first written last; a reader that finds it changed has lost the entry.
class ForwardMap {
 public:
  void add(std::uint64_t thread, std::uint64_t sequence, trace::SiteId site, trace::OperatorId op) noexcept {
    Entry& entry = entry_of(thread, sequence);
    entry.key.store(0, std::memory_order_relaxed);
    entry.origin.store(std::uint64_t(site) << 16 | std::uint64_t(op), std::memory_order_release);
    entry.key.store(key_of(thread, sequence), std::memory_order_release);
  }

  ForwardOrigin find(std::uint64_t thread, std::uint64_t sequence) noexcept {
    Entry& entry = entry_of(thread, sequence);
    if (entry.key.load(std::memory_order_acquire) != key_of(thread, sequence)) return {};
    const std::uint64_t origin = entry.origin.load(std::memory_order_acquire);
    if (entry.key.load(std::memory_order_acquire) != key_of(thread, sequence)) return {};
    return {trace::SiteId(origin >> 16), trace::OperatorId(origin & 0xffff)};
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> key;
    std::atomic<std::uint64_t> origin;
  };
  static constexpr std::size_t kEntries = 1 << 15;

  static std::uint64_t key_of(std::uint64_t thread, std::uint64_t sequence) noexcept {
    return (thread << 48 ^ sequence) + 1;
  }
  Entry& entry_of(std::uint64_t thread, std::uint64_t sequence) noexcept {
    return entries_[(sequence + thread * 4099) % kEntries];
  }

  Entry entries_[kEntries];
};

constinit ForwardMap forward_map{};
std::atomic<int> backwards_in_progress{0};
std::atomic<trace::SiteId> latest_backward_site{trace::SiteId::none};

constexpr std::uint64_t kMaxNodesPerOperator = 64;

// The engine's calls on this thread's stack that no node's code stands above. Its own nodes begin no iteration.
thread_local int calls_of_engine = 0;

void remember_nodes(ThreadState& state, ForwardOrigin origin, std::uint64_t now) noexcept {
  // A formula of torch that makes nodes, to be differentiated once more, works for the line that made its own.
  if (state.backward_depth != 0 && (origin.site == trace::SiteId::none || origin.site == state.backward_site.id)) {
    const ForwardOrigin first = forward_origin(state);
    if (first.site != trace::SiteId::none) origin = first;
  }
  const std::uint64_t thread = at::RecordFunction::currentThreadId();
  std::uint64_t sequence = state.node_sequence;
  if (now - sequence > kMaxNodesPerOperator) sequence = now - kMaxNodesPerOperator;
  for (; sequence < now; ++sequence) forward_map.add(thread, sequence, origin.site, origin.op);
  state.node_sequence = now;
}

[[gnu::cold, gnu::noinline]] void begin_iteration(const ThreadState& state) noexcept {
  const Pass before = runtime.last_pass.exchange(Pass::forward, std::memory_order_relaxed);
  if (before == Pass::none) note_step_begins(runtime.step.load(std::memory_order_relaxed));
  note_use_begins(state, before == Pass::none);
  if (before != Pass::backward) return;
  const std::uint32_t step = runtime.step.fetch_add(1, std::memory_order_relaxed) + 1;
  runtime.recorder->set_step(step);
  note_step_begins(step);
  sample_memory(step);
  stop_after_enough_steps(step);
}

inline void count_iteration(const ThreadState& state) noexcept {
  if (state.backward_depth == 0 && runtime.last_pass.load(std::memory_order_relaxed) != Pass::forward) [[unlikely]]
    begin_iteration(state);
}

}  // namespace

void note_autograd_nodes(ThreadState& state, trace::OperatorId op) noexcept {
  remember_nodes(state, {state.outer.site.id, op}, at::sequence_number::peek());
  count_iteration(state);
}

ForwardOrigin forward_origin_of(const void* node) noexcept {
  if (node == nullptr) return {};
  const auto* known = static_cast<const torch::autograd::Node*>(node);
  return forward_map.find(known->thread_id(), known->sequence_nr());
}

ForwardOrigin forward_origin(const ThreadState& state) noexcept {
  return forward_origin_of(state.node);
}

trace::OperatorId running_node(const ThreadState& state) noexcept {
  if (state.node == nullptr) return trace::OperatorId::none;
  try {
    return runtime.recorder->add_operator("autograd::" + static_cast<const torch::autograd::Node*>(state.node)->name());
  } catch (...) {  // Node::name demangles or asks Python, and may be short of memory
    return trace::OperatorId::none;
  }
}

trace::SiteId backward_call_site() noexcept {
  return backwards_in_progress.load() == 1 ? latest_backward_site.load() : trace::SiteId::none;
}

// torch::autograd::Engine::execute and ::evaluate_function as plain functions of the same calling convention: a member
// function takes `this` as its first argument. Weak: a torch that lacks one of them leaves the phase unknown.
std::vector<at::Tensor>
engine_execute(void* engine, const void* roots, const void* inputs, bool keep_graph, bool create_graph, bool accumulate_grad, const void* outputs) __asm__(
    "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_")
    DEVSAN_TORCH_FUNCTION;
void evaluate_function(void* engine, void* graph_task, void* node, void* inputs, const void* ready_queue) __asm__(
    "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_"
    "11InputBufferERKS2_INS0_10ReadyQueueEE") DEVSAN_TORCH_FUNCTION;

namespace {

struct BackwardInProgress {
  ThreadState& state = thread_state();
  const void* frame_before = state.backward_frame;
  CallSite site_before = state.backward_site;
  const trace::SiteId latest_before = latest_backward_site.load();
  BackwardScopes scopes{state};
  const int calls_before = calls_of_engine++;

  BackwardInProgress() noexcept {
    if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
    state.backward_frame = nullptr;
    if (const void* thread = python_thread(state)) {
      state.backward_site = call_site(state.caches, current_frame(thread), true);
      state.backward_frame = *frame_word(thread);
      latest_backward_site.store(state.backward_site.id);
    }
    backwards_in_progress.fetch_add(1);
    if (is_outermost()) note_backward_begins();
  }
  ~BackwardInProgress() {
    // A backward inside of a node's backward ends before the one around it does.
    trace::SiteId own = state.backward_site.id;
    latest_backward_site.compare_exchange_strong(own, latest_before);
    backwards_in_progress.fetch_sub(1);
    state.backward_frame = frame_before;
    state.backward_site = site_before;
    calls_of_engine = calls_before;
    runtime.last_pass.store(Pass::backward, std::memory_order_relaxed);
    if (is_outermost()) note_backward_ends();
  }
  bool is_outermost() const noexcept { return calls_before == 0 && state.backward_depth == 0; }
};

// The thread's PyThreadState, where it can wait for the GIL when the engine is done; null otherwise. Python calls the
// engine by one function of torch's own, which gives up the GIL for that time and takes it again as soon as this is
// over. Where a program's own code calls it, nothing says that it would.
const void* python_after_engine(ThreadState& state, const void* caller) noexcept {
  if (state.busy || state.backward_depth != 0) return nullptr;
  const void* thread = python_thread(state);
  if (thread == nullptr || !is_in_python_bindings(caller) || !interpreter_lives()) return nullptr;
  const void* frame = innermost_frame(current_frame(thread));
  const bool by_torch = frame != nullptr && is_torch_code(frame);
  return by_torch ? thread : nullptr;
}

// A backward failed for lack of memory, on whichever thread: the one that called it knows the program's objects.
[[gnu::cold, gnu::noinline]] void explain_failure(ThreadState& state, const void* caller) noexcept {
  if (!live_memory_is_unexplained()) return;
  const void* thread = python_after_engine(state, caller);
  if (thread == nullptr) return;
  const Busy busy(state);
  explain_live_memory(thread, state.backward_site.id);
}

// The main thread may do nothing but wait for this one.
[[gnu::cold, gnu::noinline]] void search_holders(ThreadState& state, const void* caller) noexcept {
  if (const void* thread = python_after_engine(state, caller)) search_holders_now(thread);
}

// After a backward everything that a step needs was in use. A backward inside of another one is a part of its step.
[[gnu::cold, gnu::noinline]] void look_where_tensors_are(ThreadState& state, const void* caller) noexcept {
  if (const void* thread = python_after_engine(state, caller))
    look_at_placements(thread, trace::LookedAt::backward_end);
}

[[gnu::cold, gnu::noinline]] void look_at_peak(ThreadState& state, const void* caller) noexcept {
  look_at_peak_after_backward(python_after_engine(state, caller), state.backward_site.id);
}

std::vector<at::Tensor> execute_wrapper(void* engine, const void* roots, const void* inputs, bool keep_graph,
                                        bool create_graph, bool accumulate_grad, const void* outputs) {
  const BackwardInProgress scope;
  if (live_memory_is_unexplained() && scope.state.backward_depth == 0) [[unlikely]]
    forget_unexplained_live_memory();
  struct Unwinding {
    ThreadState& state;
    const void* caller;
    bool left = false;
    ~Unwinding() {
      if (!left) [[unlikely]]
        explain_failure(state, caller);
    }
  } unwinding{scope.state, __builtin_return_address(0)};
  const bool outermost = scope.is_outermost();
  if (outermost) look_at_peak_before_backward();
  std::vector<at::Tensor> gradients =
      engine_execute(engine, roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  unwinding.left = true;
  if (outermost && peak_is_watched()) [[unlikely]]
    look_at_peak(scope.state, unwinding.caller);
  if (holders_are_wanted()) [[unlikely]]
    search_holders(scope.state, unwinding.caller);
  if (placements_are_due()) [[unlikely]]
    look_where_tensors_are(scope.state, unwinding.caller);
  return gradients;
}

// Operators inside a node are outermost ones: what runs around the engine, such as a Tensor::backward called from C++,
// is not what called them.
struct NodeRunning {
  ThreadState& state = thread_state();
  const void* node_before = state.node;
  std::uint32_t depth_before = state.depth;
  int calls_before = std::exchange(calls_of_engine, 0);
  OuterCall outer_before = state.outer;
  explicit NodeRunning(const void* node) noexcept {
    state.node = node;
    state.depth = 0;
    ++state.backward_depth;
  }
  ~NodeRunning() {
    --state.backward_depth;
    state.depth = depth_before;
    state.outer = outer_before;
    state.node = node_before;
    calls_of_engine = calls_before;
  }
};

DEVSAN_OFTEN_RUN void evaluate_wrapper(void* engine, void* graph_task, void* node, void* inputs,
                                       const void* ready_queue) {
  const NodeRunning scope(node);
  evaluate_function(engine, graph_task, node, inputs, ready_queue);
}

// Each autograd node takes its sequence number here when it is made. An operator's nodes are noted at its end; those
// made outside of operators are the nodes of a custom function, made by its `apply` before its forward runs, and the
// engine's own.
[[gnu::noinline]] std::uint64_t number_node_outside_operators(ThreadState& state) {
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
  // Where Python runs inside an operator, the nodes so far are the operator's.
  if (state.depth != 0 && at::sequence_number::peek() != state.node_sequence) {
    note_autograd_nodes(state, trace::OperatorId::none);
  }
  const std::uint64_t sequence = at::sequence_number::get_and_increment();
  ForwardOrigin origin;
  if (const void* thread = python_thread(state)) {
    origin.site = call_site(state.caches, current_frame(thread), true).id;
  }
  remember_nodes(state, origin, sequence + 1);
  if (calls_of_engine == 0) count_iteration(state);
  return sequence;
}

std::uint64_t number_node_wrapper() {
  ThreadState& state = thread_state();
  if (is_nested(state)) [[likely]]
    return at::sequence_number::get_and_increment();
  return number_node_outside_operators(state);
}

DEVSAN_REPLACEMENTS const Replacement backward_replacements[] = {
    {reinterpret_cast<void*>(&at::sequence_number::get_and_increment), reinterpret_cast<void*>(&number_node_wrapper)},
    {reinterpret_cast<void*>(&engine_execute), reinterpret_cast<void*>(&execute_wrapper)},
    {reinterpret_cast<void*>(&evaluate_function), reinterpret_cast<void*>(&evaluate_wrapper)},
};

}  // namespace

}  // namespace devsan::hooks
