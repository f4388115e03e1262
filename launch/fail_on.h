// `--fail-on KINDS`: which findings turn a run that ended well into one that failed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"

namespace devsan::launch {

class FailOn {
 public:
  // A comma separated list of kinds, or of `any`, `error`, `warning` (warnings and errors). Throws UsageError.
  static FailOn parse(std::string_view text);

  // What may stand in the list.
  static std::vector<std::string> words();

  // A finding that the program handled itself never matches.
  bool matches(const report::Finding& finding) const;

  // "implicit-sync at train.py:12, and 2 more": what a run failed on. Empty where nothing matches.
  std::string matches_text(const report::Report& report) const;

 private:
  std::optional<report::Severity> at_least_;
  std::vector<report::Kind> kinds_;
};

}  // namespace devsan::launch
