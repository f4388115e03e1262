// Partitions of DeepSpeed's ZeRO-3 optimizer that are not where its config wants them. The optimizer's own attributes
// say what that was (hooks/inprocess/snapshot/setting_names.def).
#pragma once

#include <vector>

#include "report/findings/build_placements.h"
#include "report/model/placements.h"
#include "trace/reader.h"

namespace devsan::report {

std::vector<Breach> misplaced_partitions(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks);

}  // namespace devsan::report
