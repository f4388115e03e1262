// The report as SARIF 2.1.0, which code hosts and editors read.
#pragma once

#include <filesystem>
#include <string>

#include "report/model/run.h"

namespace devsan::report {

// Places of files below `base` are relative to it: code hosts know the files of a checkout by such paths. An empty one
// stands for the directory that the program's own files have in common.
std::string render_sarif(const Report& report, const std::filesystem::path& base = {});

}  // namespace devsan::report
