// What kind of statement a source line is, as far as it can be told without Python. A line that is part of a longer
// statement, or that is not understood, is none.
#pragma once

#include <optional>
#include <string_view>

namespace devsan::report {

// "self.bias = torch.ones(3)  # why": the target and the value, without the comment.
struct AssignmentText {
  std::string_view target;
  std::string_view value;
};

// The line without indentation and comment; empty where a string or bracket is left open.
std::string_view statement_of(std::string_view line);
// A plain assignment to one target; annotations belong to the target and are left out. None for `x += 1` and `a = b =
// c`.
std::optional<AssignmentText> split_assignment(std::string_view line);

}  // namespace devsan::report
