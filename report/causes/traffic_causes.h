// Why the host waits, or memory is used too early, in what PyTorch lets pass, and which line to change. One kind of
// finding, one file; docs/hidden-traffic.md describes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/model/finding.h"

namespace devsan::report {

// Sets the cause and the change of a finding about traffic.
void explain_traffic(Finding& finding);

namespace traffic_causes {

struct TrafficCause {
  std::optional<RootCause> root_cause;
  std::optional<Fix> fix;
};

// None where nothing is known.
std::optional<TrafficCause> copy_still_running(const Finding& finding);
std::optional<TrafficCause> pageable_memory(const Finding& finding);
std::optional<TrafficCause> number_on_device(const Finding& finding);

// The text of the call at this position: "torch.zeros(3)". Empty where Python keeps no columns.
std::string call_at(const Frame& place);
// Whether both are code of one function; comprehensions belong to the one around them.
bool same_function(const Frame& one, const Frame& other);

}  // namespace traffic_causes
}  // namespace devsan::report
