// Changes of source text: written at nodes, applied to the text, shown as a diff.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/program/node.h"

namespace devsan::program {

struct Edit {
  std::uint32_t begin = 0;  // bytes of the old text that are replaced
  std::uint32_t end = 0;
  std::string text;
};

// The text after all edits; none where they overlap or lie outside of it.
std::optional<std::string> apply(std::string_view text, std::vector<Edit> edits);
// The grammar knows all of it. Python may still refuse it, as a `return` outside of functions.
bool parses(std::string_view text);
// With three lines of context; `patch` applies it. Empty for equal texts.
std::string as_unified_diff(std::string_view path, std::string_view old_text, std::string_view new_text);

// The functions below give no edit where the node is not of the kind they ask for, or the new code does not parse.

// `argument` is "x" or "device=d". A positional one goes behind those that are there, in front of keywords.
std::optional<Edit> insert_argument(Node call, std::string_view argument);
// Another value for a keyword that is given, or a further argument.
std::optional<Edit> set_keyword(Node call, std::string_view name, std::string_view value);
// With parentheses where the place or the new expression needs them.
std::optional<Edit> replace_expression(Node expression, std::string_view code);
// `x + y` and ".to(d)": `(x + y).to(d)`.
std::optional<Edit> append_to_expression(Node expression, std::string_view suffix);
// `x` with "torch.as_tensor" and "device=d": `torch.as_tensor(x, device=d)`.
std::optional<Edit> wrap_in_call(Node expression, std::string_view callee, std::string_view further_arguments = {});
// `code` is one or more statements; its lines get the indentation of the statement, in front of their own.
std::optional<Edit> insert_statement_after(Node statement, std::string_view code);
std::optional<Edit> insert_statement_before(Node statement, std::string_view code);

}  // namespace devsan::program
