// What sets the ranks that had a finding apart from those that ran as far and had it not.
#pragma once

#include <map>

#include "report/findings/collective_logs.h"
#include "report/findings/rank_troubles.h"
#include "report/model/run.h"

namespace devsan::report {

// Fills in `other_ranks`, `ended_ranks` and `differs` of the report's findings. For the latter a few traces are read
// once more: what other ranks made at the lines that the finding's history names, and what is recorded by name.
void set_apart(Report& report, const CollectiveLogs& logs, const std::map<int, RankTrouble>& troubles);

}  // namespace devsan::report
