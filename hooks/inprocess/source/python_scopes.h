// The qualified name of a function by the text of its file: the code objects of CPython 3.10 have none. Allocates
// nothing, and needs no interpreter.
#pragma once

#include <span>
#include <string_view>

namespace devsan::hooks {

// "Net.forward.<locals>.inner" for the function, class, lambda or comprehension that is called `name` and whose code
// begins at `line`, the first decorator's where it has any. Written to `buffer`. Empty where the text has no such code
// there, or does not tell it from another.
std::string_view qualified_name_in(std::string_view text, int line, std::string_view name,
                                   std::span<char> buffer) noexcept;

}  // namespace devsan::hooks
