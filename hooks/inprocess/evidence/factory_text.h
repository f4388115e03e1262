// Calls of torch's factories in source text: what makes a tensor on the default device. May throw std::bad_alloc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devsan::hooks {

// Whether an expression makes a tensor by a factory that is given no device, and moves nothing:
// `torch.arange(0, n, 2).float() / n`.
bool is_made_by_default(std::string_view expression);

// Whether an expression computes with what its variables hold, on the device where they are: neither moves anything,
// nor calls a function of the program.
bool stays_on_device(std::string_view expression);

// The variables that an expression reads: "base" and "steps" of `1.0 / base ** steps`, each once. Neither functions nor
// attributes, nor the names of a call's arguments.
std::vector<std::string> variables_in(std::string_view expression);

}  // namespace devsan::hooks
