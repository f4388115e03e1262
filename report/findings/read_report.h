// Reads a report that was written as JSON before, as far as findings of two runs are compared and told in short.
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "report/model/run.h"

namespace devsan::report {

// A sentence for a file that is no such report.
std::variant<Report, std::string> read_report(const std::filesystem::path& path);

// Whether the file begins as JSON does.
bool is_json(const std::filesystem::path& path);

}  // namespace devsan::report
