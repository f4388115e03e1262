// Where in a statement the call stands that an instruction makes: CPython 3.10 knows no columns. Told by the order in
// which calls end, and only where text and byte code have as many. Allocates nothing, and needs no interpreter.
#pragma once

#include <optional>
#include <string_view>

#include "hooks/python_statements.h"

namespace devsan::hooks {

// Lines from 1 on, columns in bytes from 0 on; the end is behind the last character.
struct Extent {
  int line = 0;
  int end_line = 0;
  int column = 0;
  int end_column = 0;
};

// The statement in which a line lies; none where it lies in none.
std::optional<Statement> statement_around(std::string_view text, int line) noexcept;

// A lambda is a function of its own, and so is a comprehension until CPython 3.11; the function around calls that.
enum class Caller { function, lambda, comprehension };

// The call number `rank`, from 0 on, of those `count` that the statement's code makes in the order of its byte code.
// `text` is that of the whole file.
std::optional<Extent> extent_of_call(std::string_view text, const Statement& statement, Caller caller, int rank,
                                     int count) noexcept;

}  // namespace devsan::hooks
