// A rule reads a finding and, where it recognises the mistake, says what caused it and what to change. Rules know how
// PyTorch programs go wrong; none of them knows the files or functions of any library. One rule, one file; rules.def
// lists them in the order of their precedence.
#pragma once

#include <optional>

#include "report/finding.h"

namespace devsan::report {

struct Explanation {
  std::optional<RootCause> root_cause;
  std::optional<Fix> fix;
};

// None where the rule does not apply.
using Rule = std::optional<Explanation> (*)(const Finding&);

namespace why {

#define DEVSAN_RULE(name, meaning) std::optional<Explanation> name(const Finding& finding);
#include "report/why/rules.def"
#include "report/why/traffic_rules.def"
#undef DEVSAN_RULE

}  // namespace why
}  // namespace devsan::report
