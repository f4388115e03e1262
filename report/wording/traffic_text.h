// Sentences about traffic between the host and devices.
#pragma once

#include <string>

#include "report/model/finding.h"

namespace devsan::report {

// "the host reads the target of an asynchronous copy that may still be running"
std::string what_raced(trace::RaceKind race);
// The same of memory that is spoken of as `target` or `source`: "the host reads its target".
std::string use_in_race(trace::RaceKind race, const std::string& target, const std::string& source);

// One line that says what happened. The finding has `traffic`.
std::string traffic_headline(const Finding& finding);
// "4 times a step · 1.5 MiB in all"
std::string traffic_cost(const Finding& finding);

}  // namespace devsan::report
