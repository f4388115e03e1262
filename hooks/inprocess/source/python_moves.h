// What a function does beside one of its lines: which other values it moves, by its text. As python_text.h: what cannot
// be told for sure is not told, no interpreter is needed, and anything may throw std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

// Whether an expression moves something to a device: `x.to(device)`, `x.cuda()`, `x.cpu()`; `x.to(torch.half)` does
// not.
bool moves(std::string_view value);
// The same, and not to the host.
bool moves_to_accelerator(std::string_view value);

// The first statement of a file that moves something to an accelerator; empty without one.
std::string first_move_to_accelerator(const SourceLines& lines);

// How many lines of the function around `line` bring something to the host, that line left out; 0 outside of all.
int lines_for_host(const SourceLines& lines, int line);

// The line of the function around `line` which, in another branch, gives `variable` a value that it moves: no call of
// the function runs both. 0 where none does, or several do.
int moved_in_other_branch(const SourceLines& lines, int line, const std::string& variable);

// An argument, or a value that a loop gives, which is only computed with, and a line of the same function or loop that
// moves others under their own names.
struct Unmoved {
  std::string argument;
  int line = 0;  // 0: there is no such argument
};
// Of the loops and the function around `line`, the innermost first, which gives `variable` this value.
Unmoved moved_beside(const SourceLines& lines, int line, const std::string& variable, const std::string& value);

}  // namespace devsan::hooks
