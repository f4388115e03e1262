// What devsan expects without a rule (rules/expectations.def), held against where a process kept its tensors.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/model/placements.h"
#include "trace/reader.h"

namespace devsan::report {

// `off`: names of expectations that are not judged; "all" stands for every one. Where there is doubt, nothing is found.
std::vector<Finding> judge_expectations(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks,
                                        const std::set<std::string>& off);

}  // namespace devsan::report
