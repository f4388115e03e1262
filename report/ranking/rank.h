// Candidates in the order of what speaks for them.
#pragma once

#include <vector>

#include "report/ranking/candidate.h"
#include "report/ranking/model.h"

namespace devsan::report::ranking {

struct Ranked {
  const Candidate* candidate = nullptr;
  double share = 0;     // of what speaks for all of them, 0 to 1
  bool likely = false;  // of the first one: it is right more often than the rest together, by far
};

// The best first. They point into `candidates`.
std::vector<Ranked> rank(const std::vector<Candidate>& candidates, const Model& model);

// What the line has to do with the operand that it came through: the most telling of its places. Never null for a
// candidate that candidates_of() gave.
const slice::Place* telling_place(const Candidate& candidate);

}  // namespace devsan::report::ranking
