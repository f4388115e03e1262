// The values that dynamo works with, and what they stand for: a FakeTensor that was made for one of the program's
// tensors is that tensor, any other is a step of the graph that dynamo is writing down.
//
// With the GIL (PythonSection), while the traced call lasts. May throw std::bad_alloc.
#pragma once

#include <unordered_map>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/snapshot/traced_call.h"

namespace devsan::hooks {

// The device that a FakeTensor says it is on; 0 for any other object.
DeviceKey fake_device(const void* object) noexcept;

class TracedValues {
 public:
  explicit TracedValues(const TracedCall& call);

  // The torch.fx.Node that made a FakeTensor; null where it is not known.
  const void* node_of(const void* fake) const;
  // The other way round; null where a node made no single one.
  static void* fake_of(const void* node) noexcept;
  // The program's tensor that a node, or the node of a FakeTensor, stands for; null where it was computed.
  static void* real_of_node(const void* node) noexcept;
  void* real_of(const void* fake) const;
  // The nodes that a node was computed from, in the order of its arguments.
  static std::vector<const void*> inputs_of(const void* node);

  // What a variable of a traced function stands for: an object of the program's, or a FakeTensor that was computed.
  // Null where neither is known. `variable`: a VariableTracker.
  void* object_of(const void* variable, int depth = 0) const;

 private:
  void read_graph(const void* graph);
  void* object_at(const void* source, int depth) const;
  void* cell_content(const void* variable, int depth) const;

  const void* root_;  // the translator of the compiled function
  std::unordered_map<const void*, const void*> nodes_;
};

}  // namespace devsan::hooks
