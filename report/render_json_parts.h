// Parts of the JSON report that have a file of their own.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/finding.h"
#include "report/render_json.h"

namespace devsan::report {

using Json = nlohmann::ordered_json;

// Adds `device_calls` to the JSON of a process.
void add_device_calls_json(Json& json, const Process& process);

}  // namespace devsan::report
