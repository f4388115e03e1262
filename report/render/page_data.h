// What the page knows: a head, which it reads at once, and parts, which it reads when somebody looks at them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/model/facts.h"
#include "report/model/run.h"

namespace devsan::report {

using Json = nlohmann::ordered_json;

// The report but for what is large of its processes, and beside it by the ids of findings: headlines and the operands
// in the line that failed; by file: the lines around all places that findings name.
Json page_head(const Report& report, const Sources& sources);

// The last operators of each thread, as numbers that point into a list of texts.
Json page_operators(const Run& run);

// The curves of memory, as columns, and what lines kept at their peaks. Of a run with many processes only some of their
// points, so that a page stays small.
Json page_memory(const Run& run);

// When steps and their phases were, in the same way, and when processes waited in collectives.
Json page_timeline(const Run& run);

}  // namespace devsan::report
