// Findings about collectives that ranks of a group did not enter alike, and which rank failed first.
#pragma once

#include <map>
#include <vector>

#include "report/findings/collective_logs.h"
#include "report/findings/rank_troubles.h"
#include "report/model/finding.h"

namespace devsan::report {

// To be called when all processes of the run are known, and how each ended; `troubles` are theirs (troubles_of()), and
// outlive the call. Nothing for a run that ended well.
std::vector<Finding> build_collectives(const std::vector<Process>& processes, const CollectiveLogs& logs,
                                       const std::map<int, RankTrouble>& troubles);

// None where no rank failed, or there is one rank alone. `findings` are those of the whole run.
std::optional<FirstFailure> first_failure_of(const std::vector<Process>& processes, const CollectiveLogs& logs,
                                             const std::map<int, RankTrouble>& troubles,
                                             const std::vector<Finding>& findings);

}  // namespace devsan::report
