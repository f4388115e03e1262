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

inline bool is_quote(char c) noexcept {
  return c == '"' || c == '\'';
}

// A bracket that opens.
inline bool opens(char c) noexcept {
  return c == '(' || c == '[' || c == '{';
}

bool is_identifier(std::string_view text) noexcept;

// Whether a text is a path of names, attributes and subscripts, as far as its characters tell: "kept['a'].rows[0]".
bool is_path(std::string_view text) noexcept;

// The name that a statement begins with, as that of what it assigns or calls; empty where it begins otherwise.
std::string leading_name(std::string_view statement);

// Without the blanks around it.
std::string_view trimmed(std::string_view text) noexcept;

// The statement that begins or goes on at a line: its lines up to the last bracket that is closed, without comments.
std::string statement_at(const SourceLines& lines, int line);

// The line that the statement which begins at a line ends on.
int end_of_statement(const SourceLines& lines, int line);

// Whether the statement that begins at `begin` goes on to `line`.
bool goes_on_to(const SourceLines& lines, int begin, int line);

// The code at a position, without comments, in one line; empty where its columns are not known, or it is long.
std::string code_text(const SourceLines& lines, const trace::Position& at);

// How far a line is indented; its length where it is blank.
std::size_t indentation(std::string_view line) noexcept;

// Neither code nor a decorator stands there.
bool is_blank(std::string_view line) noexcept;

// The first line before `number` that begins with `keyword`, or with `async` in front, and is indented
// less than all between; 0 without one.
int enclosing_line(const SourceLines& lines, int number, std::string_view keyword);

// The `if` that a line stands in, in its own function; 0 without one.
int condition_around(const SourceLines& lines, int line);

// The line of a function's `def`, where `first` is that, or the first of its decorators; 0 where no line has one before
// the next blank one.
int definition_below(const SourceLines& lines, int first);

// "pick" of "    def pick(self):", with `keyword` "def ".
std::string defined_name(std::string_view line, std::string_view keyword);

// "check" of "    async def check(self):"; empty for any other line.
std::string function_defined(std::string_view line);

// The line above the `def` of a method, where a decorator stands there; `type` is the line of its class. 0 without one.
int decorator_of(const SourceLines& lines, int type, std::string_view name);

// The last line of the block that a line stands in, which begins under the line `head`.
int end_of_block(const SourceLines& lines, int number, int head);

// The last line of the function that a line stands in; of the file outside of all.
int end_of_function(const SourceLines& lines, int number);

// The only line that begins with `word`, as "return ", of the function whose `def` or decorator is on the line `first`;
// 0 where there is none, or several.
int only_line_of(const SourceLines& lines, int first, std::string_view word);

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

// "x" of "x.device", "dev" and "self.device" as they are: a name or an attribute, and empty for any other expression.
std::string device_reference(std::string_view expression);

// The expression that says on which device a call makes something, or what it moves it to: "self.device", "dev", "x"
// for `x.device` and for `torch.zeros_like(x)`; "**options" where that may hold it. Empty where nothing does, several
// do, or a literal does.
std::string device_expression(std::string_view call);

// Whether a text is `dict(…)` or `{…}`, or several of them merged.
bool is_dict_display(std::string_view text) noexcept;

// With "device": "dev" of `dict(dtype=kind, device=dev)` and of `{"device": dev}`; empty where there is none.
std::string entry_of_display(std::string_view display, std::string_view key);

// `options["device"]` and `self.options["device"]`.
struct EntryReference {
  std::string container;
  std::string key;
};
std::optional<EntryReference> entry_reference(std::string_view expression);

// Where the first `=` of an assignment stands; npos where nothing is assigned, and in `total += x`.
std::size_t equals_of(std::string_view statement) noexcept;

// "k, (x, y)" of `for k, (x, y) in enumerate(pairs):`, what each turn binds; empty for any other statement.
std::string_view loop_targets(std::string_view statement) noexcept;

// Whether a text has this name in it, as a whole word: a variable, or in quotes.
bool has_word(std::string_view text, std::string_view name) noexcept;

// The same, or as an attribute of whatever object.
bool mentions_name(std::string_view text, std::string_view name) noexcept;

using trace::name_in;

// "grids", "key" and "made" of `grids[key] = made`, also where there are other targets. None for any other statement.
struct EntryStore {
  std::string container;
  std::string key;
  std::string value;
};
std::optional<EntryStore> entry_stored(std::string_view statement);

// "a.b, self.device = name, device" with "self.device": "device". None where nothing is assigned to that.
std::optional<std::string> assigned_to(std::string_view statement, std::string_view target);

// The lines from `begin`, where a statement begins, up to `end`, without that, on which statements begin that assign
// something to a variable.
std::vector<int> assignments_of(const SourceLines& lines, std::string_view variable, int begin, int end);
// What the function around a line gives a variable above it; empty where it does so nowhere, or more than once.
std::string only_value_above(const SourceLines& lines, int line, std::string_view variable);

}  // namespace devsan::hooks
