// A finding about growing memory in words.
#pragma once

#include <string>
#include <vector>

#include "report/finding.h"
#include "report/style.h"

namespace devsan::report {

// "1.2 MiB more on cuda:0 with every step, kept by `losses`"
std::string growth_headline(const Finding& finding);

// What grows, part by part, and how long that can go on.
std::vector<std::string> growth_lines(const Finding& finding, const Style& style);

// Fills in the cause and the change to make, where they are known.
void advise(Finding& finding);

}  // namespace devsan::report
