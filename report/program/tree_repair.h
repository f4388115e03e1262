// Where the grammar reads Python differently than Python does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/program/source_file.h"

namespace devsan::program {

// The text as the grammar reads it as Python does, byte for byte in the same places. Lines end with line feeds: a
// carriage return alone breaks a line as well. `type(x).y = z` is no type alias: `type` in front of a bracket is
// another name.
std::string as_grammar_reads(std::string text);

// In lists without parentheses, the grammar binds the star of `*a.b(c)` to `a` alone. The nodes are put in order: the
// star's expression is all of `a.b(c)`.
class SplatRepair {
 public:
  explicit SplatRepair(std::vector<NodeData>& nodes) : nodes_(nodes) {}
  void repair();

 private:
  bool is_left_end(std::uint32_t node) const;
  void lift(std::uint32_t splat);

  std::vector<NodeData>& nodes_;
};

}  // namespace devsan::program
