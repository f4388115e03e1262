// Which definitions can give a variable the value that is read at a place.
//
// Every definition that can is among the answers, as far as the code of the function itself decides; there may be more.
// Two things are left out: that a called function changes attributes of the object, and that two names are one object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "report/program/definitions.h"
#include "report/program/flow_graph.h"

namespace devsan::program {

struct Reached {
  const Definition* definition = nullptr;
  Overlap overlap = Overlap::Whole;  // Perhaps where a subscript is no literal
};

struct Reaching {
  // From the nearest. For `x.y` also those of `x`: they decide it as well.
  std::vector<Reached> definitions;
  // The value may be from before the code ran: of an attribute set elsewhere, a builtin, a name that is not bound yet.
  bool from_entry = false;
};

class Flow {
 public:
  Flow(const SourceFile& file, const Scopes& scopes, const Definitions& definitions);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Of a name, attribute or subscript where it is read. The target of an assignment: what it had before.
  Reaching reaching(Node use) const;
  // As if the variable was read just before `place`.
  Reaching reaching(const Variable& variable, Node place) const;
  // Stores to parts of the variable that can have happened: `x.y = …` for x. From the nearest.
  std::vector<const Definition*> parts_stored(Node use) const;
  // Of a function, lambda, class or the module.
  const FlowGraph& graph(const Scope& scope) const;
  // How many vertices were looked at so far, for tests of the cost.
  std::uint64_t steps() const { return steps_; }

 private:
  struct Course;  // a graph, with the definitions at its vertices
  struct Search;

  const Course& course(const Scope& scope) const;
  void search(Search& search, const Course& course) const;
  void visit(Search& search, const Course& course, std::uint32_t vertex, std::uint32_t until) const;
  void add_from_elsewhere(Search& search, const Scope& own) const;
  void run(Search& search) const;

  const SourceFile& file_;
  const Scopes& scopes_;
  const Definitions& definitions_;
  mutable std::map<std::uint32_t, std::unique_ptr<Course>> courses_;
  mutable std::uint64_t steps_ = 0;
};

}  // namespace devsan::program
