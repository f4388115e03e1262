// Statements that read the same but for the names in them, by their text. As python_text.h: no interpreter is needed,
// and anything may throw std::bad_alloc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace devsan::hooks {

// What `other` moves, and `statement`, which reads the same otherwise, does not: "self.mlp(x)" and ".to(y.device)" of
// `y = y + self.mlp(x)` beside `y = y + self.attention(x).to(y.device)`.
struct TwinMove {
  std::string expression;  // as it stands in `statement`
  std::string move;
};
// None where the two differ in more than names, or in more than one move.
std::optional<TwinMove> moved_by_twin(std::string_view statement, std::string_view other);

}  // namespace devsan::hooks
