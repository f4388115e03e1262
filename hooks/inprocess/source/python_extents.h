// Where in a statement the call or subscript stands that an instruction is of: CPython 3.10 knows no columns. Told by
// the order in which those of a kind end, and only where text and byte code have as many. Allocates nothing, and needs
// no interpreter.
#pragma once

#include <optional>
#include <string_view>

#include "hooks/inprocess/source/python_statements.h"

namespace devsan::hooks {

// Lines from 1 on, columns in bytes from 0 on; the end is behind the last character.
struct SourceExtent {
  int line = 0;
  int end_line = 0;
  int column = 0;
  int end_column = 0;
};

// The statement in which a line lies; none where it lies in none.
std::optional<Statement> statement_around(std::string_view text, int line) noexcept;

// A lambda is a function of its own, and so is a comprehension until CPython 3.11; the function around calls that.
enum class Caller { function, lambda, comprehension };

// `a(b)`, and `a[b]` that is read, or stored by a sign of equality.
enum class SourcePart { call, read, store };

// The part number `rank`, from 0 on, of those `count` of its kind that the statement's code has in the order of its
// byte code. `text` is that of the whole file.
std::optional<SourceExtent> extent_of(std::string_view text, const Statement& statement, Caller caller, SourcePart part,
                                      int rank, int count) noexcept;

}  // namespace devsan::hooks
