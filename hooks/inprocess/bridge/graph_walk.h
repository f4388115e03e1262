// The autograd graph behind a tensor.
#pragma once

#include <cstddef>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

class GraphVisitor {
 public:
  // Each node once; its site is that of the forward operator that made it, none where that is not known any more.
  virtual void node(trace::SiteId site) = 0;

 protected:
  ~GraphVisitor() = default;
};

// At most `most` nodes, those nearest to the tensor first. With the GIL, so that no Python code lets go of the graph.
// Allocates; what that throws goes to the caller.
void visit_graph(const c10::TensorImpl* tensor, GraphVisitor& visitor, std::size_t most);

}  // namespace devsan::hooks
