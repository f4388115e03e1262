// Parts of the JSON report that have a file of their own.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "report/render/render_json.h"

namespace devsan::report {

using Json = nlohmann::ordered_json;

// The page leaves out what is large: of a process its threads, memory and calls, and in a collective the stacks of
// ranks that wait in it, which are where the collective is called.
enum class Detail { all, page };

// The whole report.
Json report_json(const Report& report, Detail detail);

// null for an empty text.
Json text_or_null(std::string_view text);

Json finding_json(const Finding& finding, Detail detail = Detail::all);
Json frame_json(const Frame& frame);
Json stack_json(const std::vector<Frame>& frames);
Json ending_json(const Ending& ending);
Json collective_json(const CollectiveStory& story, Detail detail);
Json first_failure_json(const std::optional<FirstFailure>& failure, Detail detail);
Json earlier_failure_json(const EarlierFailure& earlier);
Json growth_json(const Growth& growth);
Json live_memory_json(const LiveMemory& live);
Json peak_memory_json(const PeakMemory& peak);

// Add `memory`, `peak_memory`, `device_calls` and `collectives` to the JSON of a process, where it has any.
void add_memory_json(Json& json, const Process& process);
void add_device_calls_json(Json& json, const Process& process);
void add_collectives_json(Json& json, const Process& process);

}  // namespace devsan::report
