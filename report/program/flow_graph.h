// The order in which the code of one function, class or module may run.
//
// A vertex is what is evaluated at one go: a simple statement, the condition of an `if`, the targets of a `for`, an
// item of a `with`. The code of functions and classes inside has graphs of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "report/program/node.h"
#include "report/program/scopes.h"

namespace devsan::program {

struct FlowVertex {
  Node root;
  std::vector<std::uint32_t> before;  // vertices that may run just before
};

class FlowGraph {
 public:
  static constexpr std::uint32_t kEntry = 0;

  explicit FlowGraph(const Scope& scope);
  const std::vector<FlowVertex>& vertices() const { return vertices_; }
  // After which control falls off the end of the code.
  const std::vector<std::uint32_t>& ends() const { return ends_; }
  // Whose root contains the node. The block of a `finally` has two for each root: of its normal course, and of the one
  // after an exception or a jump.
  std::vector<std::uint32_t> vertices_with(Node node) const;

 private:
  friend class FlowBuilder;
  std::vector<FlowVertex> vertices_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> by_root_;  // roots do not overlap
};

}  // namespace devsan::program
