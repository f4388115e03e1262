// The fitted ranking: decision trees over the features of a candidate, as data. scripts/rank fit writes them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "report/ranking/candidate.h"

namespace devsan::report::ranking {

class Model {
 public:
  // Of the text of ranking.json. Throws std::runtime_error where it is none, or has features that there are not.
  explicit Model(std::string_view json);
  // That the program was built with; read when it is first asked for.
  static const Model& standard();

  // Comparable between candidates of one failure.
  double score(const Candidate& candidate) const;
  // The share of the first candidate, from which on it is right so often that a report may call it likely.
  double likely() const { return likely_; }

 private:
  struct Split {
    Feature feature;
    float threshold;
    int below;  // the next split where the feature is at most the threshold; of a leaf, -1 - its number
    int above;
  };
  struct Tree {
    std::vector<Split> splits;
    std::vector<float> leaves;
  };

  std::vector<Tree> trees_;
  double likely_ = 1;
};

}  // namespace devsan::report::ranking
