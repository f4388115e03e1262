#include "report/program/flow_graph.h"

#include <algorithm>
#include <numeric>

#include "report/program/flow_builder.h"

namespace devsan::program {

FlowGraph::FlowGraph(const Scope& scope) {
  FlowBuilder(*this).build(scope);
  by_root_.resize(vertices_.size());
  std::iota(by_root_.begin(), by_root_.end(), 0);
  std::erase_if(by_root_, [this](std::uint32_t vertex) { return !vertices_[vertex].root; });
  std::stable_sort(by_root_.begin(), by_root_.end(), [this](std::uint32_t one, std::uint32_t other) {
    return vertices_[one].root.index() < vertices_[other].root.index();
  });
}

std::vector<std::uint32_t> FlowGraph::vertices_with(Node node) const {
  auto at = std::upper_bound(
      by_root_.begin(), by_root_.end(), node.index(),
      [this](std::uint32_t index, std::uint32_t vertex) { return index < vertices_[vertex].root.index(); });
  std::vector<std::uint32_t> found;
  while (at != by_root_.begin() && vertices_[*--at].root.contains(node)) found.push_back(*at);
  return found;
}

}  // namespace devsan::program
