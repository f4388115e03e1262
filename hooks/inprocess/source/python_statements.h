// Python source, statement by statement. What is not understood ends it. Allocates nothing, and needs no interpreter.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace devsan::hooks {

// The lines of a statement, up to the last bracket, string or backslash that goes on. Where a block begins on its own
// line, or statements are separated by semicolons, all of that is one.
struct Statement {
  int first = 0;  // line
  int last = 0;
  std::size_t indent = 0;
  std::string_view text;  // from its first word on, with comments between its lines
  int lambdas = 0;
  int comprehensions = 0;
  bool nested = false;    // one comprehension inside of another
  bool opaque = false;    // or one in an f-string, which is not looked into
  bool one_line = false;  // a block that begins on its own line: "def f(): return 1"
};

class StatementReader {
 public:
  // `text` outlives this.
  explicit StatementReader(std::string_view text) noexcept;

  // False at the end of the text, or where it is not understood.
  bool next(Statement& statement) noexcept;

 private:
  static constexpr int kMaxBrackets = 64;
  struct Bracket {
    bool loops = false;     // is a comprehension
    bool contains = false;  // has one inside
  };

  std::size_t skip_indent() noexcept;
  bool read_lines(Statement& statement) noexcept;
  bool pass_continuation() noexcept;
  bool pass_code(Statement& statement) noexcept;
  bool pass_bracket(Statement& statement) noexcept;
  void pass_word(Statement& statement) noexcept;
  bool pass_string(Statement& statement) noexcept;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  int number_ = 1;
  int depth_ = 0;
  std::array<Bracket, kMaxBrackets> brackets_;
};

// The end of the string literal whose first quote stands at `at`; npos where it has none. Its line breaks, also those
// behind a backslash, are counted into `lines`.
std::size_t end_of_string(std::string_view text, std::size_t at, int& lines) noexcept;

// Whether the letters before the quote at `at` make it an f-string.
bool is_formatted(std::string_view text, std::size_t at) noexcept;

}  // namespace devsan::hooks
