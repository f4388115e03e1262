// What all candidates of one failure share.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/ranking/candidate.h"

namespace devsan::report::ranking {

// What a function could take a device from.
struct Surroundings {
  double knows_device = 0;  // 1: its code names or reads one; 0.5: its class keeps one
  bool has_tensor = false;  // an argument that a tensor's attributes or arithmetic are asked of
  bool reads_data = false;  // of a dataset, tokenizer, loader
  bool of_module = false;   // a method of an nn.Module or autograd Function
};

class Context {
 public:
  Context(const Finding& finding, const slice::Code& code);

  const Finding& finding;
  const slice::Code& code;
  const Operand* odd = nullptr;  // never null where there are operands
  const Operand* other = nullptr;
  // The newest step that made or moved it; null without one.
  const LineageStep* odd_step = nullptr;
  const LineageStep* other_step = nullptr;
  program::Node failing_function;  // that the failing line is in
  bool odd_kept = false;           // it was made or moved before the calls that fail began
  bool other_kept = false;

  bool is_at(const Frame& frame, const Candidate& candidate) const;
  const Surroundings& around(program::Node function) const;
  // The function has code that the history of the odd operand, or the stack, went through.
  bool ran(program::Node function) const { return ran_.contains(function); }
  bool is_library(std::string_view file) const { return library_files_.contains(file); }
  // Names that the function binds to something moved, or made with a device.
  const std::set<std::string_view>& moved_names(program::Node function) const;

 private:
  bool is_kept(const LineageStep* step) const;

  std::set<program::Node> ran_;
  std::set<std::string, std::less<>> library_files_;
  mutable std::map<program::Node, Surroundings> around_;
  mutable std::map<program::Node, std::set<std::string_view>> moved_names_;
};

using Candidates = std::vector<Candidate>;

// Each sets the features of one file of report/ranking.
void set_distances(const Context& context, Candidate& candidate);
void set_history(const Context& context, Candidate& candidate);
void set_text(const Context& context, Candidate& candidate);
void set_scope(const Context& context, Candidate& candidate);
void set_shape(const Context& context, Candidate& candidate);
void set_beside(const Context& context, Candidate& candidate);
void set_failure(const Context& context, Candidate& candidate);
// Those that compare candidates with each other.
void set_order(const Context& context, Candidates& candidates);

// 1 at distance 0, less the farther.
double nearness(double distance);

}  // namespace devsan::report::ranking
