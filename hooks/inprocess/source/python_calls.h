// What a call gives for a parameter of the function it calls, by the text of both. As python_text.h: what cannot be
// told for sure is not told, no interpreter is needed, and anything may throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::hooks {

// "a.b(c)" and {"d", "e=f"} of `a.b(c)(d, e=f)`. None for any other expression.
struct CallText {
  std::string callee;
  std::vector<std::string> arguments;
};
std::optional<CallText> call_text(std::string_view expression);

// A parameter in a function's definition. `index` counts all that can be given by position, `self` included.
struct Parameter {
  std::string name;
  std::optional<std::size_t> index;  // none where it can be given by its name alone
  std::string standard;              // its default; empty without one
};
// `definition` is a whole statement: "def fill(self, n, *, device='cpu'):".
std::optional<Parameter> parameter_of(std::string_view definition, std::string_view name);

// Whether what is defined is called through an object or a class, which comes first among its arguments.
bool is_bound(std::string_view definition);

struct Given {
  enum class By {
    nobody,    // it cannot be told
    value,     // the call gives it: `text`
    standard,  // the call leaves it at its default: `text`
    others,    // the call hands on all that it was called with
  };
  By by = By::nobody;
  std::string text;
};
// `bound`: the call does not write the first argument down.
Given given_for(const Parameter& parameter, const CallText& call, bool bound);

}  // namespace devsan::hooks
