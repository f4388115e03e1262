#include "hooks/inprocess/bridge/graph_walk.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <deque>
#include <unordered_set>

#include "hooks/torch_bridge/backward.h"

namespace devsan::hooks {

void visit_graph(const c10::TensorImpl* tensor, GraphVisitor& visitor, std::size_t most) {
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(tensor->autograd_meta());
  if (meta == nullptr || meta->grad_fn_ == nullptr) return;
  // A thread of autograd's engine may give back a graph: ours stays for as long as this lasts. Releases of torch have
  // different pointers to it.
  const auto root = meta->grad_fn_;
  std::unordered_set<const torch::autograd::Node*> seen = {root.get()};
  std::deque<const torch::autograd::Node*> waiting = {root.get()};
  while (!waiting.empty()) {
    const torch::autograd::Node* const node = waiting.front();
    waiting.pop_front();
    visitor.node(forward_origin_of(node).site);
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      if (edge.function != nullptr && seen.size() < most && seen.insert(edge.function.get()).second)
        waiting.push_back(edge.function.get());
    }
  }
}

}  // namespace devsan::hooks
