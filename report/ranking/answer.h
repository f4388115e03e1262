// The lines where a failure's device could have been decided otherwise, in the order of what speaks for each.
//
// Lines of the program come from slices of the program's files alone: what a library does with a value is then one
// step. Where the failure lies in installed code, that code is ranked as well, and the lines of both take turns. Those
// of the side that decided a device come first: what a program hands to a library is the program's to change.
#pragma once

#include <memory>
#include <vector>

#include "report/ranking/rank.h"
#include "report/slice/code.h"
#include "report/slice/slice.h"

namespace devsan::report::ranking {

class Answer {
 public:
  // `codebase` and `finding` outlive this.
  Answer(slice::Codebase& codebase, const Finding& finding, const Model& model);

  // The best first, at most `most`.
  std::vector<Ranked> lines(std::size_t most) const;
  // The code that a line was ranked with.
  const slice::Code& code_of(const Ranked& line) const;

 private:
  struct Tier {
    Tier(slice::Codebase& codebase, const Finding& finding, slice::Files files, const Model& model);
    slice::Code code;
    std::vector<slice::Place> places;
    std::vector<Candidate> candidates;
    std::vector<Ranked> ranked;
  };

  std::unique_ptr<Tier> program_;
  bool libraries_first_ = false;
  std::unique_ptr<Tier> libraries_;  // null where the failure is the program's alone
};

}  // namespace devsan::report::ranking
