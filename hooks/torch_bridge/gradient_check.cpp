#include "hooks/torch_bridge/gradient_check.h"

// accumulate_grad.h brings at::isBatchedTensor, with which the header of the same function in at::functorch is
// ambiguous unless it came first. Sources are compiled several in one unit, and others need that header.
#include <ATen/functorch/BatchedTensorImpl.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/input_metadata.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/torch_bridge/backward.h"

namespace devsan::hooks {

using Edges = std::vector<torch::autograd::Edge>;
using Gradients = std::vector<at::Tensor>;
using FormatError = std::function<std::string(const std::string&)>;

// torch::autograd::validate_outputs(edge_list, variable_list&, function). Weak: a torch that lacks it leaves such a
// finding without operands.
void validate_outputs(const Edges& edges, Gradients& gradients, const FormatError& format) __asm__(
    "_ZN5torch8autograd16validate_outputsERKSt6vectorINS0_4EdgeESaIS2_EERS1_IN2at6TensorESaIS8_EERKSt8functionIF"
#if _GLIBCXX_USE_CXX11_ABI
    "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSI_EE"
#else
    "SsRKSsEE"
#endif
    ) __attribute__((weak, visibility("default")));

namespace {

struct Check {
  const Edges& edges;
  const Gradients& gradients;
};

class Checking {
 public:
  explicit Checking(const Check& check) noexcept : before_(state_.gradient_check) { state_.gradient_check = &check; }
  ~Checking() { state_.gradient_check = before_; }
  Checking(const Checking&) = delete;
  Checking& operator=(const Checking&) = delete;

 private:
  ThreadState& state_ = thread_state();
  const void* before_;
};

void validate_wrapper(const Edges& edges, Gradients& gradients, const FormatError& format) {
  const Check check{edges, gradients};
  const Checking scope(check);
  validate_outputs(edges, gradients, format);
}

DEVSAN_REPLACEMENTS const Replacement gradient_replacements[] = {
    {reinterpret_cast<void*>(&validate_outputs), reinterpret_cast<void*>(&validate_wrapper)},
};

// Where the value comes from that a gradient is for: the history of a leaf, or the line of the forward that made it.
trace::LineageId history_of_input(const torch::autograd::Edge& edge, trace::DeviceSlot device) {
  if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(edge.function.get())) {
    const c10::StorageImpl* storage = TensorFields::storage(leaf->variable.unsafeGetTensorImpl());
    return storage != nullptr ? origin_table().find(storage) : trace::LineageId::none;
  }
  const ForwardOrigin origin = forward_origin_of(edge.function.get());
  if (origin.site == trace::SiteId::none || origin.op == trace::OperatorId::none) return trace::LineageId::none;
  trace::LineageNode made{};
  made.site = origin.site;
  made.op = origin.op;
  made.device = device;
  made.how = trace::How::derived;
  return step_like(made);
}

trace::StringId indexed(const char* text, std::size_t index) noexcept {
  char buffer[32];
  const int length = std::snprintf(buffer, sizeof buffer, "%s[%zu]", text, index);
  return runtime.recorder->intern_string({buffer, static_cast<std::size_t>(length)});
}

}  // namespace

void add_checked_gradients(const ThreadState& state, OperandList& operands) noexcept {
  if (state.gradient_check == nullptr) return;
  const Check& check = *static_cast<const Check*>(state.gradient_check);
  for (std::size_t k = 0; k < check.gradients.size() && k < check.edges.size(); ++k) {
    const torch::autograd::Edge& edge = check.edges[k];
    const at::Tensor& gradient = check.gradients[k];
    if (!edge.is_valid() || !gradient.defined() || edge.input_nr >= edge.function->num_inputs()) continue;
    const c10::Device wanted = edge.function->input_metadata(edge.input_nr).device();
    const c10::TensorImpl* tensor = gradient.unsafeGetTensorImpl();
    if (tensor->device() == wanted) continue;
    const std::size_t before = operands.records().size();
    operands.tensor(0, -1, tensor);
    operands.device(1, wanted);
    if (operands.records().size() != before + 2) return;  // no room left
    operands.records()[before].argument = indexed("gradients", k);
    trace::OperandRecord& input = operands.records()[before + 1];
    input.argument = indexed("inputs", k);
    input.lineage = history_of_input(edge, input.device);
  }
}

}  // namespace devsan::hooks
