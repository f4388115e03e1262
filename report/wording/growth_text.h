// A finding about growing memory in words.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/text/style.h"

namespace devsan::report {

// "cuda:0 grows: 1.2 MiB more with every step, kept by `losses`"
std::string growth_headline(const Finding& finding);

// "What grows: `losses`, with its autograd graphs"; empty where it is not known what does.
std::string what_grows_text(const Growth& growth);

// "Since step 3. At this rate cuda:0 is full in 812 more steps."
std::string growth_outlook(const Growth& growth);

// What grows, part by part, and how long that can go on.
std::vector<std::string> growth_lines(const Finding& finding, const Style& style);

// "losses" of the holder "losses[...]": what all that is kept there has in common.
std::string container_of(const std::string& holder);

// Fills in the cause and the change to make, where they are known.
void advise(Finding& finding);

}  // namespace devsan::report
