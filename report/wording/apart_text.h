// Sentences about the ranks that did not have what others had.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"

namespace devsan::report {

// One sentence each, without its full stop, on ranks that ended meanwhile and on those that ran as far; what differs
// follows the last one.
std::vector<std::string> apart_sentences(const Finding& finding);
// "device of `self.bias`: cpu here, cuda:0 there"
std::string difference_text(const Difference& difference);

}  // namespace devsan::report
