// Experts of one layer that are not where they, or the group that they are divided among, say. What they say are
// attributes of modules (hooks/inprocess/snapshot/settings.h).
#pragma once

#include <vector>

#include "report/findings/build_placements.h"
#include "report/model/placements.h"
#include "trace/reader.h"

namespace devsan::report {

std::vector<Breach> misplaced_experts(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks);

}  // namespace devsan::report
