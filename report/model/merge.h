// Equal findings of many processes become one.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "report/model/finding.h"

namespace devsan::report {

// A short hash of what makes findings equal: kind, operator, place (in backward also the forward's), and where the odd
// operand is from. Neither devices (every rank has its own) nor steps, processes or messages are in it, so it stays the
// same from run to run.
std::string identity_of(const Finding& finding);

// Takes findings in any order. Of equal ones the worst and earliest tells the story; counts and ranks are of all.
class FindingMerger {
 public:
  void add(Finding finding);
  // Errors first, then by step, then by the time they were made.
  std::vector<Finding> take();

 private:
  std::vector<Finding> findings_;
  std::unordered_map<std::string, std::size_t> by_id_;
};

}  // namespace devsan::report
