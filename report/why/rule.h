// A rule reads a finding and, where it recognises the mistake, says what caused it and what to change. Rules know how
// PyTorch programs go wrong; none of them knows the files or functions of any library. One rule, one file; the order of
// the list in explain.cpp is that of their precedence.
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

// A number left on an accelerator reached an operator that works on CPU tensors.
std::optional<Explanation> cuda_scalar_was_python_float(const Finding& finding);
// A generator is on another device than the numbers it should make.
std::optional<Explanation> generator_elsewhere(const Finding& finding);
// A factory was called without `device=`, in code of the user's own.
std::optional<Explanation> made_without_device(const Finding& finding);
// A parameter or buffer stayed where it was made: its module was never moved.
std::optional<Explanation> module_not_moved(const Finding& finding);
// What is always possible: move the odd operand where it is used.
std::optional<Explanation> move_where_used(const Finding& finding);

}  // namespace why
}  // namespace devsan::report
