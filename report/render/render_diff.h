// What two runs have in common and what not, for the terminal and as JSON.
#pragma once

#include <string>

#include "report/model/compare.h"
#include "report/model/run.h"
#include "report/text/style.h"

namespace devsan::report {

inline constexpr const char* kDiffSchema = "devsan-diff/1";

std::string render_diff(const Comparison& comparison, const Style& style);
std::string render_diff_json(const Comparison& comparison, const Run& before, const Run& after);

}  // namespace devsan::report
