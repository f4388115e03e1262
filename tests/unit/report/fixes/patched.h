// Programs with a marked line to change, and the patch that is made of it.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"

namespace devsan::report::fixes {

// A line of `source` ends in `#` and what it is: `!` the line to change, `?` the failing one, `<` a call that led
// there, `c`, `m` and `d` where the odd operand was created, moved and derived, `k` a call that led to where it was
// created, `C` where the other one was created.
struct Failing {
  std::string source;
  std::string odd = "scale";
  std::string other = "x";
  std::string odd_device = "cpu";
  std::string other_device = "cuda:0";
  trace::NameKind odd_is = trace::NameKind::unknown;
  trace::NameKind other_is = trace::NameKind::unknown;
  std::string op = "aten::mul.Tensor";
  std::string odd_arg = "other";
  bool drawn = false;        // the odd operand is a generator
  std::string own_device{};  // of the rank, in a job of several
};

struct Patched {
  std::string added;  // the lines that are new, without their marks, with " | " between
  std::string text;
  std::string diff;
};

// Empty where there is no patch, or the line is no candidate.
Patched patched(const Failing& failing);

}  // namespace devsan::report::fixes
