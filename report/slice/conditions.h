// What has to hold so that a statement of a function runs.
#pragma once

#include <vector>

#include "report/program/node.h"

namespace devsan::report::slice {

struct Condition {
  program::Node statement;  // the `if`, `elif` or `while`
  program::Node condition;
  bool exit = false;  // it stands before, and leaves the function or the loop where it holds
};

// Of the code of one function, those of either kind from the nearest.
std::vector<Condition> conditions_on(program::Node node);
// A definition, lambda or module: its code runs when somebody calls it.
bool is_body(program::Node node);

}  // namespace devsan::report::slice
