#include "report/wording/traffic_text.h"

#include <cstdio>

#include "report/text/words.h"

namespace devsan::report {

std::string what_raced(trace::RaceKind race) {
  if (race == trace::RaceKind::none) return "memory is used while an asynchronous copy of it may still be running";
  return use_in_race(race, "the target of an asynchronous copy that may still be running",
                     "the source of an asynchronous copy that may still be running");
}

std::string use_in_race(trace::RaceKind race, const std::string& target, const std::string& source) {
  switch (race) {
    case trace::RaceKind::none:
      break;
    case trace::RaceKind::host_read_target:
      return "the host reads " + target;
    case trace::RaceKind::host_wrote_target:
      return "the host writes to " + target;
    case trace::RaceKind::host_wrote_source:
      return "the host overwrites " + source;
    case trace::RaceKind::stream_used_target:
      return "another stream uses " + target;
    case trace::RaceKind::stream_wrote_source:
      return "another stream overwrites " + source;
    case trace::RaceKind::numpy_read_target:
      return target + " is read outside PyTorch";
  }
  return "its memory is used";
}

std::string traffic_headline(const Finding& finding) {
  switch (finding.kind) {
    case Kind::async_race:
      return what_raced(finding.traffic->race);
    case Kind::unpinned_async_copy:
      return finding.op + " cannot be asynchronous: the host's memory is not pinned";
    case Kind::implicit_transfer:
      return finding.op + " copies between host and device, again and again";
    case Kind::implicit_sync:
      if (!finding.traffic->taker.empty())
        return finding.traffic->taker + " takes a number: the host waits for the device";
      return finding.op + ": the host waits for the device";
    default:
      return std::string(meaning_of(finding.kind));
  }
}

std::string traffic_cost(const Finding& finding) {
  const double per_step = finding.traffic->per_step;
  char times[64];
  std::snprintf(times, sizeof times, "%g times a step", per_step);
  std::string text = per_step == 1 ? "once a step" : per_step > 0 ? times : "";
  if (finding.traffic->bytes > 0) text += (text.empty() ? "" : " · ") + bytes_text(finding.traffic->bytes) + " in all";
  return text;
}

}  // namespace devsan::report
