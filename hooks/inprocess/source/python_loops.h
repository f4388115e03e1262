// What a loop goes through, by its text. As python_text.h: what cannot be told for sure is not told, no interpreter is
// needed, and anything may throw std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

namespace devsan::hooks {

// "(a, b)", "[a]", "{'a': b}", and "a, b" as it stands in the head of a loop; no comprehension.
bool is_display(std::string_view text);

// "models" of `enumerate(models)`, `models.values()` and `list(models.items())`.
std::string unwrapped(std::string_view text);

// "models" of "for m in models:" and of "[m.to(device) for m in models if m]"; empty for any other statement.
std::string iterated(std::string_view statement);

}  // namespace devsan::hooks
