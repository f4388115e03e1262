// Findings about collectives that ranks of a group did not enter alike, and which rank failed first.
#pragma once

#include <optional>
#include <vector>

#include "report/findings/collective_stories.h"
#include "report/model/finding.h"

namespace devsan::report {

// Nothing for a run that ended well, or of one rank alone.
std::vector<Finding> build_collectives(const Stories& stories);

// None where no rank failed, or there is one rank alone. `findings` are those of the whole run.
std::optional<FirstFailure> first_failure_of(const Stories& stories, const std::vector<Finding>& findings);

}  // namespace devsan::report
