// Takes the source text of one Python operation apart, as far as it can be done without Python: "a == b[None, :]",
// "x.add_(y, alpha=2)", "table[index]". What it cannot tell for sure it does not tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::report {

struct BinaryText {
  std::string_view left;
  std::string_view right;
};

struct ArgumentText {
  std::string_view keyword;  // empty for a positional one
  std::string_view text;
};

struct CallText {
  std::string_view receiver;  // "x" of "x.add_(y)", "torch" of "torch.add(x, y)"; empty for "f(x)"
  std::vector<ArgumentText> arguments;
  bool subscript = false;  // "x[i, j]": the receiver is x, the arguments are i and j
};

// The operands of the operator that is applied last, `x += y` included.
std::optional<BinaryText> split_binary(std::string_view text);
std::optional<CallText> split_call(std::string_view text);
// The elements of a list or tuple display.
std::optional<std::vector<std::string_view>> split_display(std::string_view text);
// Where `name` stands as a variable or an expression of its own, at or behind `begin`: not as an attribute of something
// else, nor as a part of a longer word. npos where it does not.
std::size_t find_name(std::string_view text, std::string_view name, std::size_t begin = 0);
// A number, string, None, True, False, or slice of these.
bool is_literal(std::string_view text);

}  // namespace devsan::report
