// Parts of the JSON report that have a file of their own.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/model/finding.h"
#include "report/render/render_json.h"

namespace devsan::report {

using Json = nlohmann::ordered_json;

// null for an empty text.
Json text_or_null(std::string_view text);

Json finding_json(const Finding& finding);
Json ending_json(const Ending& ending);
Json growth_json(const Growth& growth);
Json live_memory_json(const LiveMemory& live);

// Add `memory` and `device_calls` to the JSON of a process, where it has any.
void add_memory_json(Json& json, const Process& process);
void add_device_calls_json(Json& json, const Process& process);

}  // namespace devsan::report
