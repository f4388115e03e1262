// What a finding is about, in one line without colours.
#pragma once

#include <string>

#include "report/model/finding.h"
#include "report/model/run.h"

namespace devsan::report {

// "aten::mul.Tensor met operands on cuda:0 and cpu"
std::string headline(const Finding& finding);

// The same in a few words: "aten::mul.Tensor".
std::string short_headline(const Finding& finding);

// "2 errors and 1 warning", "no finding"
std::string verdict_text(const Report& report);

// "Likely cause", "Possible cause", or "Cause" where the run itself shows it.
std::string_view cause_title(const RootCause& cause);

// "suppressed by suppressions.txt:3: known", "the program allows it (devsan.allow)"
std::string silence_text(const Silence& silence);

}  // namespace devsan::report
