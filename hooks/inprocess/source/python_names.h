// The variables that an expression or a statement names, by its text. As python_text.h: what cannot be told for sure is
// not told, no interpreter is needed, and anything may throw std::bad_alloc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devsan::hooks {

// "self.net", "x", "scales" and "k" of `self.net.run(x, axis=scales[k])`: variables, with their attributes as far as
// these are not called; each once. What stands in a string is not looked at.
std::vector<std::string> paths_of_variables(std::string_view text);

// What a statement assigns, or a loop goes through: "b.c" of `a = b.c`, `for a in b.c:` and `with b.c as a:`; the whole
// of any other statement.
std::string_view assigned_text(std::string_view statement) noexcept;

}  // namespace devsan::hooks
