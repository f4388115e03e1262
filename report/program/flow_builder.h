// Builds the graph of one scope, statement by statement.
#pragma once

#include <vector>

#include "report/program/flow_graph.h"

namespace devsan::program {

class FlowBuilder {
 public:
  explicit FlowBuilder(FlowGraph& graph);
  void build(const Scope& scope);

 private:
  // The vertices from which the next one is reached.
  using Ends = std::vector<std::uint32_t>;
  enum class Jump : std::uint8_t { Break, Continue, Return };
  // What a jump passes on its way out.
  struct Frame {
    bool loop = false;  // or else a `finally`
    Ends breaks;
    Ends continues;
    Ends jumps;  // into the `finally`
    bool passed[3] = {false, false, false};
  };

  void statement(Node node);
  void block(Node node);
  void if_statement(Node node);
  void while_statement(Node node);
  void for_statement(Node node);
  void with_statement(Node node);
  void try_statement(Node node);
  void handlers(Node node, const Ends& raised, Ends& normal);
  void finally_clause(Node body, Ends raised, const Frame& frame);
  void match_statement(Node node);
  void case_clause(Node node, Ends& matched);
  void jump(Jump kind);

  std::uint32_t add(Node root);
  Ends vertices_from(std::uint32_t first) const;
  void link(const Ends& from, std::uint32_t to);
  static void merge(Ends& into, const Ends& more);

  FlowGraph& graph_;
  Ends ends_;
  std::vector<Frame> frames_;
  int depth_ = 0;
  int finally_depth_ = 0;
};

}  // namespace devsan::program
