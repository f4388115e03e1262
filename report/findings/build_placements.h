// Findings about tensors that are not where a rule, or a built-in expectation, has them: `wrong-placement`. Rules about
// waits and copies make warnings of the findings about these.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/model/finding.h"
#include "report/model/placements.h"
#include "report/model/run.h"
#include "rules/rule.h"
#include "trace/reader.h"

namespace devsan::report {

// The rules of a run, and which of them said anything of any process.
class RuleBook {
 public:
  // With these the rules in traces are passed over.
  void use_instead(std::vector<rules::Rule> rules, std::set<std::string> off);

  // Takes in those that the process was given. Before the functions below.
  void begin_trace(const trace::TraceFile& trace);

  std::vector<Finding> judge(const trace::TraceFile& trace);
  void judge_traffic(const trace::TraceFile& trace, std::vector<Finding>& findings) const;

  // Of rules about names that nothing had, though names were seen: likely a slip.
  std::vector<Notice> unused() const;

 private:
  using Place = std::pair<std::string, int>;  // a file and a line
  bool holds_for(const rules::Rule& rule, const trace::TraceFile& trace) const;

  std::vector<rules::Rule> current_;
  std::set<std::string> off_;
  std::map<std::pair<Place, std::string>, bool> applied_;  // by the sentence as well
  bool instead_ = false;
  bool saw_names_ = false;
};

// One tensor that is where it should not be.
struct Breach {
  const KeptTensor* track = nullptr;
  const Stay* stay = nullptr;
  std::string expected;  // "cuda:1"
};

// Whether the process kept a rule. `moving`: those of `tracks` with where they were within steps.
bool keeps_rule(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks,
                const std::vector<KeptTensor>& moving, const rules::Rule& rule);

// Those of one rule as findings: one for each place of the program that put tensors there, and each device.
std::vector<Finding> findings_of(const trace::TraceFile& trace, const Expectation& rule, std::vector<Breach> breaches);

}  // namespace devsan::report
