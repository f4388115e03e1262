// Python source as text, as far as a device has to be followed through it. What cannot be told for sure is not told.
// Needs no interpreter, so it serves threads without Python, too. May throw std::bad_alloc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/file_layout.h"
#include "trace/words.h"

namespace devsan::hooks {

// The first lines of a file, at most 20,000; the first is number 1. Empty for a number that is none.
class SourceLines {
 public:
  // `text` outlives this.
  explicit SourceLines(std::string_view text);
  int count() const noexcept { return static_cast<int>(lines_.size()); }
  std::string_view operator[](int number) const noexcept {
    return number > 0 && number <= count() ? lines_[static_cast<std::size_t>(number) - 1] : std::string_view();
  }

 private:
  std::vector<std::string_view> lines_;
};

// A bracket that opens.
inline bool opens(char c) noexcept {
  return c == '(' || c == '[' || c == '{';
}

bool is_identifier(std::string_view text) noexcept;

// Without the blanks around it.
std::string_view trimmed(std::string_view text) noexcept;

// The statement that begins or goes on at a line: its lines up to the last bracket that is closed, without comments.
std::string statement_at(const SourceLines& lines, int line);

// The line that the statement which begins at a line ends on.
int end_of_statement(const SourceLines& lines, int line);

// The code at a position, without comments, in one line; empty where its columns are not known, or it is long.
std::string code_text(const SourceLines& lines, const trace::Position& at);

// The first line before `number` that begins with `keyword`, or with `async` in front, and is indented
// less than all between; 0 without one.
int enclosing_line(const SourceLines& lines, int number, std::string_view keyword);

// The last line of the function that a line stands in; of the file outside of all.
int end_of_function(const SourceLines& lines, int number);

// "Net.forward", the function that a line stands in, as Python qualifies its name; "<module>" outside of all.
std::string qualified_function(const SourceLines& lines, int number);

// Where "name(" stands in code as a call, no definition; npos without one.
std::size_t call_in(std::string_view line, std::string_view name) noexcept;

// The end of an expression that begins at `begin`: a comma, a bracket or the end of the text.
std::size_t end_of_expression(std::string_view text, std::size_t begin) noexcept;

// The bracket that closes the one at `open`; npos where none does.
std::size_t closing_of(std::string_view text, std::size_t open) noexcept;

// What stands between the brackets that open at `open`, by its commas. None where they are not closed.
std::optional<std::vector<std::string>> arguments_at(std::string_view text, std::size_t open);

// "k, (x, y)" of `for k, (x, y) in enumerate(pairs):`, what each turn binds; empty for any other statement.
std::string_view loop_targets(std::string_view statement) noexcept;

// What a statement assigns, or a loop goes through: "b.c" of `a = b.c` and `for a in b.c:`; the whole of any other
// statement.
std::string_view assigned_text(std::string_view statement) noexcept;

// "a.b, self.device = name, device" with "self.device": "device". None where nothing is assigned to that.
std::optional<std::string> assigned_to(std::string_view statement, std::string_view target);

// The lines from `begin`, where a statement begins, up to `end`, without that, on which statements begin that assign
// something to a variable.
std::vector<int> assignments_of(const SourceLines& lines, std::string_view variable, int begin, int end);
// What the function around a line gives a variable above it; empty where it does so nowhere, or more than once.
std::string only_value_above(const SourceLines& lines, int line, std::string_view variable);

}  // namespace devsan::hooks
