// CUDA graphs. While a graph is captured, operators run as always, and their calls are kept; a replay makes the same
// calls on the same memory. At the end of the capture the memory that was there before is put back, since hardware
// runs nothing while it captures.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace devsan::sim {

// The calls of one capture. It keeps the tensors alive that they use.
class Graph {
 public:
  void add(std::function<void()> call) { calls_.push_back(std::move(call)); }
  void replay() const {
    for (const auto& call : calls_) call();
  }

 private:
  std::vector<std::function<void()>> calls_;
};

// Read at every operator: one relaxed load.
bool is_capturing() noexcept;

// Raises what CUDA raises for an action that a capture does not permit, and makes the capture fail.
[[noreturn]] void refuse_in_capture();
inline void check_not_capturing() {
  if (is_capturing()) refuse_in_capture();
}

// The same for what is not simulated: raises NotImplementedError while a capture is under way.
void check_covered_in_capture(const char* what);

// Captures are one at a time in a process.
void begin_capture();

// Raises if an action was refused since begin_capture. The caller owns the graph.
std::unique_ptr<Graph> end_capture();

// Raises while a capture is under way.
void replay(const Graph& graph);

// Whether an operator gives a number or a shape to the host, and so has to wait for the device.
bool has_to_wait(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// The call of one operator: made before it runs, told of its results after.
class CapturedCall {
 public:
  CapturedCall(const c10::OperatorHandle& op, c10::DispatchKeySet keys, const torch::jit::Stack& stack);
  void returned(const torch::jit::Stack& stack);

 private:
  const c10::OperatorHandle& op_;
  c10::DispatchKeySet keys_;
  std::vector<c10::IValue> arguments_;
};

// For copies between tensors, one of which may be on the host: only a pinned one that is copied asynchronously can be.
void capture_copy(const at::Tensor& self, const at::Tensor& source, bool non_blocking);

}  // namespace devsan::sim
