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

// A backward function returned a gradient on another device than its input.
std::optional<Explanation> gradient_elsewhere(const Finding& finding);
// A total that began on the CPU takes in numbers from an accelerator.
std::optional<Explanation> total_made_on_cpu(const Finding& finding);
// A number left on an accelerator reached an operator that works on CPU tensors.
std::optional<Explanation> cuda_scalar_was_python_float(const Finding& finding);
// A generator is on another device than the numbers it should make.
std::optional<Explanation> generator_elsewhere(const Finding& finding);
// `.to()` was called and its result dropped.
std::optional<Explanation> to_result_dropped(const Finding& finding);
// Weights that a hook brings over when their module is called were used without calling it.
std::optional<Explanation> hook_bypassed(const Finding& finding);
// A module sits in a plain list, dict or object, where moving its parent does not reach it.
std::optional<Explanation> module_not_registered(const Finding& finding);
// A default argument was made once, when the function was defined.
std::optional<Explanation> default_argument(const Finding& finding);
// The operands began as one value; one of them was kept from before the other moved.
std::optional<Explanation> left_behind(const Finding& finding);
// An optimizer's state is not on its parameter's device.
std::optional<Explanation> optimizer_state_elsewhere(const Finding& finding);
// `torch.load` put it on its device.
std::optional<Explanation> loaded_elsewhere(const Finding& finding);
// Somebody moved it to its device.
std::optional<Explanation> moved_away(const Finding& finding);
// It was made for an earlier call, and kept.
std::optional<Explanation> kept_from_first_call(const Finding& finding);
// A plain attribute of a module does not move with it.
std::optional<Explanation> attribute_not_buffer(const Finding& finding);
// An object that is no module keeps it.
std::optional<Explanation> kept_by_object(const Finding& finding);
// A parameter or buffer stayed where it was made: its module was never moved.
std::optional<Explanation> module_not_moved(const Finding& finding);
// It was made over memory of the host.
std::optional<Explanation> numpy_round_trip(const Finding& finding);
// It was taken from a batch, a library or a file, and not moved.
std::optional<Explanation> taken_from_elsewhere(const Finding& finding);
// A factory made it where it is.
std::optional<Explanation> made_without_device(const Finding& finding);
// What is always possible: move the odd operand where it is used.
std::optional<Explanation> move_where_used(const Finding& finding);

}  // namespace why
}  // namespace devsan::report
