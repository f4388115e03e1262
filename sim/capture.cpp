#include "sim/capture.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "sim/allocator.h"
#include "sim/devices.h"
#include "sim/fallback.h"
#include "sim/guarded_pages.h"
#include "sim/host_alias.h"
#include "sim/random.h"
#include "sim/with_tensors.h"
#include "trace/not_simulated.h"

namespace devsan::sim {
namespace {

using c10::IValue;
using torch::jit::Stack;

constexpr int kCaptureUnsupported = 900;  // cudaErrorStreamCaptureUnsupported
constexpr int kCaptureInvalidated = 901;  // cudaErrorStreamCaptureInvalidated

// A storage that the capture met, and what it held then; nothing of one that an operator of the capture made.
struct SavedMemory {
  c10::Storage storage;
  std::optional<std::string> content;
};

struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::unordered_map<const c10::StorageImpl*, SavedMemory> saved;
  std::vector<std::uint64_t> random_offsets;
  bool refused = false;
};

std::atomic<bool> g_capturing{false};
std::mutex g_mutex;  // guards the capture; backward runs on threads of its own
std::optional<Capture>& current() {
  static auto* capture = new std::optional<Capture>();
  return *capture;
}

[[noreturn]] void raise(int code, const char* text) {
  throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, code,
                              std::string("CUDA error: ") + text + "\n");
}

void save(const c10::Storage& storage) {
  const auto [known, is_new] = current()->saved.try_emplace(storage.unsafeGetStorageImpl(), SavedMemory{storage, {}});
  if (!is_new) return;
  const OpenPages open(storage.data());
  known->second.content.emplace(static_cast<const char*>(storage.data()), storage.nbytes());
}

void note_made(const c10::Storage& storage) {
  current()->saved.try_emplace(storage.unsafeGetStorageImpl(), SavedMemory{storage, {}});
}

void mark_refused() {
  const std::lock_guard lock(g_mutex);
  if (current()) current()->refused = true;
}

// A tensor of its own over the same memory: the program may change the shape of the one that it holds. What is on the
// host becomes a part of the graph, as the arguments of a kernel do.
at::Tensor kept(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (!is_simulated(tensor)) return tensor.clone();
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

void check_capturable(const at::Tensor& tensor) {
  if (is_simulated(tensor) && !tensor.has_storage()) check_covered_in_capture("sparse tensors");
}

template <typename Visit>
void for_each_index(const torch::jit::Stack& stack, const c10::OperatorHandle& op, Visit visit) {
  for (const IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (!argument.isOptionalTensorList()) continue;
    for (const std::optional<at::Tensor>& index : argument.toOptionalTensorVector()) {
      if (index && index->defined()) visit(*index);
    }
  }
}

bool is_mask(const at::Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// Masks are turned into indices on the host, and indices on the host are copied from memory that is not pinned.
bool index_waits(const c10::OperatorHandle& op, const Stack& stack) {
  bool waits = false;
  for_each_index(stack, op, [&](const at::Tensor& index) { waits = waits || is_mask(index) || !is_simulated(index); });
  return waits;
}

// One number from the host that goes where masks say is filled in without indices.
bool is_masked_fill(const c10::OperatorHandle& op, const Stack& stack) {
  const auto arguments = torch::jit::last(stack, op.schema().arguments().size());
  const at::Tensor& values = arguments[2].toTensor();
  bool is_fill = !arguments[3].toBool() && values.numel() == 1 && !is_simulated(values);
  for_each_index(stack, op,
                 [&](const at::Tensor& index) { is_fill = is_fill && is_simulated(index) && is_mask(index); });
  return is_fill;
}

// Gives the tensor that the capture made the values of the one that a replay made.
void take_values(const at::Tensor& captured, const at::Tensor& replayed) {
  if (!captured.defined() || !is_simulated(captured) || captured.storage().is_alias_of(replayed.storage())) return;
  host_alias(captured).copy_(host_alias(replayed));
}

void take_values(const IValue& captured, const IValue& replayed) {
  if (captured.isTensor()) {
    take_values(captured.toTensor(), replayed.toTensor());
  } else if (captured.isTensorList()) {
    const std::vector<at::Tensor> old = captured.toTensorVector(), made = replayed.toTensorVector();
    for (std::size_t index = 0; index < old.size(); ++index) take_values(old[index], made[index]);
  }
}

void call_again(const c10::OperatorHandle& op, c10::DispatchKeySet keys, const std::vector<IValue>& arguments,
                const std::vector<IValue>& results) {
  Stack stack(arguments);
  run_on_host(op, keys, &stack);
  for (std::size_t index = 0; index < results.size(); ++index) take_values(results[index], stack[index]);
}

void put_back(const Capture& capture) {
  for (const auto& [impl, saved] : capture.saved) {
    // Hardware would refuse to resize it.
    if (!saved.content || saved.storage.nbytes() != saved.content->size()) continue;
    const OpenPages open(saved.storage.data());
    std::memcpy(const_cast<void*>(saved.storage.data()), saved.content->data(), saved.content->size());
  }
  for (std::size_t device = 0; device < capture.random_offsets.size(); ++device) {
    at::Generator generator = default_generator(static_cast<c10::DeviceIndex>(device));
    generator.set_offset(capture.random_offsets[device]);
  }
}

}  // namespace

bool has_to_wait(const c10::OperatorHandle& op, const Stack& stack) {
  const std::string& name = op.schema().name();
  if (name == "aten::index") return index_waits(op, stack);
  if (name == "aten::_index_put_impl_") return index_waits(op, stack) && !is_masked_fill(op, stack);
  if (name == "aten::repeat_interleave") return torch::jit::peek(stack, 1, 2).isNone();  // without an output_size
  return op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
}

bool is_capturing() noexcept {
  return g_capturing.load(std::memory_order_relaxed);
}

void refuse_in_capture() {
  mark_refused();
  raise(kCaptureUnsupported, "operation not permitted when stream is capturing");
}

void check_covered_in_capture(const char* what) {
  if (!is_capturing()) return;
  mark_refused();
  TORCH_CHECK_NOT_IMPLEMENTED(false, trace::kNotSimulated, what, " in a captured CUDA graph");
}

void begin_capture() {
  const std::lock_guard lock(g_mutex);
  TORCH_CHECK(!current(), "devsan's simulated CUDA devices capture one graph at a time");
  current().emplace();
  for (int device = 0; device < device_count(); ++device) {
    current()->random_offsets.push_back(default_generator(static_cast<c10::DeviceIndex>(device)).get_offset());
  }
  g_capturing.store(true);
}

std::unique_ptr<Graph> end_capture() {
  const std::lock_guard lock(g_mutex);
  TORCH_CHECK(current().has_value(), "capture_end: no graph is being captured");
  g_capturing.store(false);
  Capture capture = std::move(*current());
  current().reset();
  put_back(capture);
  if (capture.refused) raise(kCaptureInvalidated, "operation failed due to a previous error during capture");
  return std::move(capture.graph);
}

void replay(const Graph& graph) {
  check_not_capturing();
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  graph.replay();
}

CapturedCall::CapturedCall(const c10::OperatorHandle& op, c10::DispatchKeySet keys, const Stack& stack)
    : op_(op), keys_(keys) {
  if (has_to_wait(op, stack)) refuse_in_capture();
  for (const IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    arguments_.push_back(with_tensors(argument, [](const at::Tensor& tensor) {
      check_capturable(tensor);
      if (is_simulated(tensor)) {
        const std::lock_guard lock(g_mutex);
        if (current()) save(tensor.storage());
      }
      return kept(tensor);
    }));
  }
}

void CapturedCall::returned(const Stack& stack) {
  std::vector<IValue> results;
  for (const IValue& result : torch::jit::last(stack, op_.schema().returns().size())) {
    results.push_back(with_tensors(result, [](const at::Tensor& tensor) {
      check_capturable(tensor);
      if (!is_simulated(tensor)) return at::Tensor();
      const std::lock_guard lock(g_mutex);
      if (current()) note_made(tensor.storage());
      return kept(tensor);
    }));
  }
  const std::lock_guard lock(g_mutex);
  if (!current()) return;
  current()->graph->add([op = op_, keys = keys_, arguments = std::move(arguments_), results = std::move(results)] {
    call_again(op, keys, arguments, results);
  });
}

void capture_copy(const at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  for (const at::Tensor& side : {self, source}) {
    if (!is_simulated(side) && !(non_blocking && is_pinned(side.const_data_ptr()))) refuse_in_capture();
  }
  check_capturable(self);
  check_capturable(source);
  const auto same_memory = [](const at::Tensor& side) { return is_simulated(side) ? kept(side) : side.detach(); };
  const std::lock_guard lock(g_mutex);
  if (!current()) return;
  if (is_simulated(self)) save(self.storage());
  current()->graph->add(
      [self = same_memory(self), source = same_memory(source)] { host_alias(self).copy_(host_alias(source)); });
}

}  // namespace devsan::sim
