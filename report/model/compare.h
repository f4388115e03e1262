// Which findings of one run another run has, too.
#pragma once

#include <vector>

#include "report/model/finding.h"

namespace devsan::report {

struct Comparison {
  struct Pair {
    const Finding* before = nullptr;
    const Finding* after = nullptr;
  };
  std::vector<const Finding*> fresh;  // in the order of `after`, as the pairs
  std::vector<Pair> worse;            // of a higher severity than before
  std::vector<Pair> same;
  std::vector<const Finding*> gone;  // in the order of `before`

  bool has_news() const { return !fresh.empty() || !worse.empty(); }
};

// Findings are the same where kind, operator, operands' names, function and the text of the line are, wherever the
// line stands by now and wherever the program lies; or all of these but the text, where the operands have names.
Comparison compare(const std::vector<const Finding*>& before, const std::vector<const Finding*>& after);

}  // namespace devsan::report
