#include "hooks/inprocess/source/python_moves.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "hooks/inprocess/source/python_calls.h"

namespace devsan::hooks {

namespace {

// A clause of a condition that a line stands in: its head, and its last line.
struct Clause {
  int head;
  int end;
};

bool is_condition(std::string_view line) {
  constexpr std::array<std::string_view, 3> kHeads = {"if ", "elif ", "else:"};
  return std::ranges::any_of(kHeads, [&](std::string_view head) { return trimmed(line).starts_with(head); });
}

// The clauses around a line of a function, the innermost first.
std::vector<Clause> clauses_around(const SourceLines& lines, int line, int definition) {
  std::vector<Clause> found;
  std::size_t inside = indentation(lines[line]);
  for (int k = line - 1; k > definition; --k) {
    if (is_blank(lines[k]) || indentation(lines[k]) >= inside) continue;
    inside = indentation(lines[k]);
    if (is_condition(lines[k])) found.push_back({k, end_of_block(lines, line, k)});
  }
  return found;
}

// Whether whoever runs a clause does not come to what stands behind it.
bool leaves(const SourceLines& lines, const Clause& clause) {
  constexpr std::array<std::string_view, 4> kLeaves = {"return", "raise", "continue", "break"};
  const std::size_t inside = indentation(lines[clause.head + 1]);
  for (int k = clause.end; k > clause.head; --k) {
    if (is_blank(lines[k]) || indentation(lines[k]) != inside) continue;
    return std::ranges::any_of(kLeaves, [&](std::string_view word) { return trimmed(lines[k]).starts_with(word); });
  }
  return false;
}

// Whether the second is an `elif` or `else` of the first's condition.
bool follows(const SourceLines& lines, const Clause& one, const Clause& other) {
  const std::size_t column = indentation(lines[one.head]);
  if (other.head <= one.head || indentation(lines[other.head]) != column) return false;
  for (int k = one.head + 1; k <= other.head; ++k) {
    if (is_blank(lines[k]) || indentation(lines[k]) > column) continue;
    if (!is_condition(lines[k]) || trimmed(lines[k]).starts_with("if ")) return false;
  }
  return true;
}

// Whether a call of the function that runs the one line does not run the other.
bool excludes(const SourceLines& lines, int definition, int one, int other) {
  const std::vector<Clause> others = clauses_around(lines, other, definition);
  return std::ranges::any_of(clauses_around(lines, one, definition), [&](const Clause& clause) {
    if (other > clause.head && other <= clause.end) return false;
    if (other > clause.end && leaves(lines, clause)) return true;
    return std::ranges::any_of(others, [&](const Clause& with) { return follows(lines, clause, with); });
  });
}

// What brings values to the lines behind it, which they go by names for: the definition of a function, or a loop.
struct Giver {
  std::string statement;
  int begin = 0;  // the first line behind it
  int end = 0;    // the last

  // Whether it gives a value by this name.
  bool gives(std::string_view name) const {
    if (!statement.starts_with("for ")) return parameter_of(statement, name).has_value();
    return has_word(std::string_view(statement).substr(0, statement.find(" in ")), name);
  }
};

Giver giver_at(const SourceLines& lines, int head, int end) {
  return {std::string(trimmed(statement_at(lines, head))), end_of_statement(lines, head) + 1, end};
}

// The loops of the function around a line, the innermost first, and the function.
std::vector<Giver> givers_around(const SourceLines& lines, int line) {
  std::vector<Giver> found;
  const int definition = enclosing_line(lines, line, "def ");
  for (int loop = enclosing_line(lines, line, "for "); loop > definition; loop = enclosing_line(lines, loop, "for ")) {
    found.push_back(giver_at(lines, loop, end_of_block(lines, line, loop)));
  }
  if (definition != 0) found.push_back(giver_at(lines, definition, end_of_function(lines, line)));
  return found;
}

// "x" and "y" of `x, y = x.to(device), y.to(device)`, where both are given; else empty.
std::vector<std::string> values_moved(const std::string& statement, const Giver& giver) {
  const std::size_t equals = statement.find(" = ");
  if (equals == statement.npos || !moves(std::string_view(statement).substr(equals))) return {};
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin < equals;) {
    const std::size_t end = std::min(statement.find(',', begin), equals);
    const std::string name(trimmed(std::string_view(statement).substr(begin, end - begin)));
    if (!is_identifier(name) || !giver.gives(name)) return {};
    if (!has_word(std::string_view(statement).substr(equals), name)) return {};
    found.push_back(name);
    begin = end + 1;
  }
  return found;
}

// Of what a giver gives.
Unmoved unmoved_of(const SourceLines& lines, const Giver& giver, int line, const std::string& variable,
                   const std::string& value) {
  std::vector<std::string> moved;
  Unmoved found;
  for (int k = giver.begin; k <= giver.end; k = end_of_statement(lines, k) + 1) {
    if (is_blank(lines[k])) continue;
    const std::vector<std::string> names = values_moved(statement_at(lines, k), giver);
    if (!names.empty() && found.line == 0) found.line = k;
    moved.insert(moved.end(), names.begin(), names.end());
  }
  if (found.line == 0 || found.line == line) return {};
  const auto is_moved = [&](const std::string& name) { return std::ranges::find(moved, name) != moved.end(); };
  // `mask = mask.float()`, whatever else that takes.
  const bool itself = has_word(value, variable) && giver.gives(variable);
  if (itself && !is_moved(variable)) return {variable, found.line};
  if (value.find("self.") != std::string::npos) return {};  // it may come from there
  for (std::size_t at = 0; at < value.size(); ++at) {
    const std::size_t length = std::string_view(value).substr(at).find_first_of(" .,()[]{}+-*/=<>&|~:'\"");
    const std::string name = value.substr(at, length);
    const bool argument = is_identifier(name) && name != "self" && giver.gives(name);
    if (argument && is_moved(name)) return {};
    if (argument) found.argument = name;
    if (length == std::string::npos) break;
    at += length;
  }
  return found.argument.empty() ? Unmoved() : found;
}

}  // namespace

bool moves(std::string_view value) {
  const bool to = value.find(".to(") != value.npos && !device_expression(value).empty();
  return to || value.find(".cuda(") != value.npos || value.find(".cpu()") != value.npos;
}

bool moves_to_accelerator(std::string_view value) {
  return moves(value) && value.find("cpu") == value.npos;
}

std::string first_move_to_accelerator(const SourceLines& lines) {
  for (int k = 1; k <= lines.count(); ++k) {
    if (is_blank(lines[k]) || !moves_to_accelerator(lines[k])) continue;
    std::string statement = statement_at(lines, k);
    if (moves_to_accelerator(statement)) return statement;
  }
  return {};
}

int lines_for_host(const SourceLines& lines, int line) {
  const int definition = enclosing_line(lines, line, "def ");
  if (definition == 0) return 0;
  int found = 0;
  const int end = end_of_function(lines, line);
  for (int k = definition + 1; k <= end; ++k) {
    if (k != line && !is_blank(lines[k]) && lines[k].find(".cpu()") != std::string_view::npos) ++found;
  }
  return found;
}

int moved_in_other_branch(const SourceLines& lines, int line, const std::string& variable) {
  const int definition = enclosing_line(lines, line, "def ");
  if (definition == 0) return 0;
  int found = 0;
  for (const int other : assignments_of(lines, variable, definition + 1, end_of_function(lines, line) + 1)) {
    const std::string value = assigned_to(statement_at(lines, other), variable).value_or("");
    if (other == line || !moves(value)) continue;
    if (!excludes(lines, definition, other, line) && !excludes(lines, definition, line, other)) continue;
    if (found != 0) return 0;
    found = other;
  }
  return found;
}

Unmoved moved_beside(const SourceLines& lines, int line, const std::string& variable, const std::string& value) {
  for (const Giver& giver : givers_around(lines, line)) {
    const Unmoved found = unmoved_of(lines, giver, line, variable, value);
    if (found.line != 0) return found;
  }
  return {};
}

}  // namespace devsan::hooks
