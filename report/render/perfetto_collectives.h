// Collectives in a Perfetto trace: a track for each group of a process, and arrows between the ranks of one collective.
#pragma once

#include "report/model/run.h"
#include "report/render/perfetto_events.h"

namespace devsan::report {

// Arrows lead from the rank that came last, for which the others waited.
void add_collectives(const Run& run, PerfettoEvents& events);

}  // namespace devsan::report
