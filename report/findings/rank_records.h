// What a rank recorded by name: where its tensors are, its settings, and the values of its variables. Held against what
// another rank recorded under the same names.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

// By what they are called; of one thing, a process may have recorded several values.
using RecordedValues = std::map<std::string, std::set<std::string>>;

struct RankRecords {
  RecordedValues devices;    // "model.head.weight": "cuda:1"
  RecordedValues settings;   // "engine.optimizer.offload_optimizer": "1"
  RecordedValues variables;  // "`config[offload]` in train.py": "True"; only of what PyTorch refused
};

// As it was in the step of the finding. `had_it`: the finding is one of this trace; of its facts only those are taken
// that were recorded with it.
RankRecords records_of(const trace::TraceFile& trace, const Finding& finding, bool had_it);

// What all of `here` have in common and none of `there` has: at most `most`, what the finding names first.
std::vector<Difference> differences_between(const std::vector<RankRecords>& here, const std::vector<RankRecords>& there,
                                            const Finding& finding, std::size_t most);

}  // namespace devsan::report
