// What a variable is taken out of, where no expression of its own gives it its value: the result of a call, or what a
// loop goes through. As python_text.h: what cannot be told for sure is not told, no interpreter is needed, and anything
// may throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

struct TakenOut {
  std::string source;                    // "self.check(x)", and "plan" of `for name, where in plan.items():`
  bool entries = false;                  // it is one of those that `source` has in it, a value of a dictionary
  std::optional<std::size_t> element{};  // of several that come together, its place among them
  bool operator==(const TakenOut& other) const = default;
};

// Of `device = f(x)` and `device, n = f(x)`, where no more than a call stands on the right.
std::optional<TakenOut> taken_by_assignment(std::string_view statement, std::string_view name);

// Of the head of a loop, or of a comprehension anywhere in a statement, that binds the name. A key of a dictionary, and
// a number of `enumerate()`, are taken out of nothing.
std::optional<TakenOut> taken_by_loop(std::string_view statement, std::string_view name);

// "place_of(net)" of `torch.zeros(n, device=place_of(net))`: what computes the device for a call; empty where no
// function of the program's does.
std::string device_computed_by(std::string_view call);

// "plan" where a call takes its device out of that by a key which is no literal, as `x.to(plan[name])` does, or by
// whether something is in there: `x.to(gpu if name in plan[stage] else "cpu")`. Empty for other calls.
std::string table_of_device(std::string_view call);

// A value and where it stands.
struct ValueAt {
  int line = 0;
  std::string text;
};

// The lines on which a function hands something back, by its text; `first` may be that of a decorator.
std::vector<int> returns_of(const SourceLines& lines, int first);

// What the function whose `def` is on a line hands back, by its only `return`; of several values the one at `element`.
std::optional<ValueAt> value_returned(const SourceLines& lines, int definition, std::optional<std::size_t> element);

// The value that the only line from `begin` up to `end`, without that, puts into a container by its name.
std::optional<ValueAt> value_put(const SourceLines& lines, std::string_view container, int begin, int end);

// The `def` of what is called by "self.name", of the class around the line or the only one of the file, or by "name",
// which stands in no class; 0 where the file has none, or several.
int definition_called(const SourceLines& lines, int line, std::string_view callee);

}  // namespace devsan::hooks
