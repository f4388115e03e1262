#include "report/causes/traffic_causes.h"

#include "report/model/statement_lines.h"
#include "trace/function_names.h"

namespace devsan::report {
namespace traffic_causes {
namespace {

std::optional<TrafficCause> cause_of(const Finding& finding) {
  switch (finding.kind) {
    case Kind::async_race:
      return copy_still_running(finding);
    case Kind::unpinned_async_copy:
      return pageable_memory(finding);
    case Kind::implicit_sync:
      return number_on_device(finding);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string call_at(const Frame& place) {
  return std::string(call_text_of(place));
}

bool same_function(const Frame& one, const Frame& other) {
  const auto function_of = [](const Frame& place) {
    const std::string_view function = trace::function_around(place.function);
    // A comprehension of a script itself goes by no name of a function around it.
    return trace::is_comprehension(function) ? "<module>" : function;
  };
  return one.file == other.file && function_of(one) == function_of(other);
}

}  // namespace traffic_causes

void explain_traffic(Finding& finding) {
  std::optional<traffic_causes::TrafficCause> cause = traffic_causes::cause_of(finding);
  if (!cause) return;
  finding.root_cause = std::move(cause->root_cause);
  finding.fix = std::move(cause->fix);
}

}  // namespace devsan::report
