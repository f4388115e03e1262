// Statements that read the same but for the names in them, by their text. As python_text.h: no interpreter is needed,
// and anything may throw std::bad_alloc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

// What `other` moves, and `statement`, which reads the same otherwise, does not: "self.mlp(x)" and ".to(y.device)" of
// `y = y + self.mlp(x)` beside `y = y + self.attention(x).to(y.device)`.
struct TwinMove {
  std::string expression;  // as it stands in `statement`
  std::string move;
};
// None where the two differ in more than names, or in more than one move.
std::optional<TwinMove> moved_by_twin(std::string_view statement, std::string_view other);

struct Twin {
  int line = 0;
  TwinMove move;
};
// The statements of the function around `line`, or of the script, which read as the one at it does and move something.
std::vector<Twin> moving_twins(const SourceLines& lines, int line);

}  // namespace devsan::hooks
