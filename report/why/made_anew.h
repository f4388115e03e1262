// Weights that came into a model after it had moved: made anew by a method of their module, or given to the model by
// the program.
#pragma once

#include <optional>

#include "report/finding.h"
#include "report/why/rule.h"

namespace devsan::report::why {

// Whether a method of the module that owns the weight made it, after the module was made: `reset()` or `add_adapter()`,
// long after the move. `bound` gives the outermost module its name, and may be null.
bool made_anew(const Operand& stayed, const Evidence* bound);
Explanation made_by_method(const Operand& stayed, const Operand& tensor, const Finding& finding);

// A buffer that a model which is elsewhere was given, or that a method of its module stores anew: none where it is no
// such buffer.
std::optional<Explanation> buffer_given(const Operand& stayed, const Operand& tensor, const Finding& finding);

}  // namespace devsan::report::why
