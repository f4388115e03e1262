// The report as JSON, by the schema "devsan-report/1": docs/report-schema.md, report/render/report.schema.json.
#pragma once

#include <string>

#include "report/model/run.h"

namespace devsan::report {

inline constexpr const char* kSchema = "devsan-report/1";

// Valid UTF-8 whatever the traces hold, ending in a newline.
std::string render_json(const Report& report);

// "2026-11-21T02:57:24.123Z"; empty for 0.
std::string iso_time(std::int64_t time_ns);

}  // namespace devsan::report
