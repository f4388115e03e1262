// Findings for tests: an operand on the CPU meets one on cuda:0 in a program of a few lines.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"

namespace devsan::report::program_findings {

using trace::NameKind;

inline constexpr const char* kFile = "/srv/train/model.py";
inline constexpr const char* kLibrary = "/srv/.venv/lib/python3.11/site-packages/library/code.py";

// A line of the program; `call` is the part of it that calls the operator, by default all of it.
Frame line(int number, const char* function, const std::string& source, const std::string& call = "");
// The same in an installed library.
Frame library_line(int number, const char* function, const std::string& source);

LineageStep created(const Frame& at, const char* device = "cpu");
LineageStep derived(const Frame& at, const char* device = "cpu");
LineageStep moved(const Frame& at, const char* device);
// The same step, and the calls that led to it.
LineageStep called_by(LineageStep step, const std::vector<Frame>& calls);
// The same of another operator: "aten::cat".
LineageStep with_op(LineageStep step, const char* op);
// The same, by torch's Module.to().
LineageStep by_module(LineageStep step);

// `x + NAME` in line 30 of `Net.forward`: x, of shape [4], on cuda:0, and an odd operand of shape [4] on the CPU.
Finding add(const char* odd_name, trace::NameKind is = trace::NameKind::local);
Operand& wanted(Finding& finding);
Operand& odd(Finding& finding);

}  // namespace devsan::report::program_findings
