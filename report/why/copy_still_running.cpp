// An asynchronous copy returns before it has run. Who touches its memory next must wait for it: the host for its
// stream, another stream for an event behind it.
#include "report/frames.h"
#include "report/operands.h"
#include "report/traffic_text.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

bool is_about_streams(trace::RaceKind race) {
  return race == trace::RaceKind::stream_used_target || race == trace::RaceKind::stream_wrote_source;
}

std::string wait_for_it(const Finding& finding) {
  if (is_about_streams(finding.traffic->race)) {
    return "Let this stream wait for the one that copies: `torch.cuda.current_stream().wait_stream(…)` before this "
           "line, with the stream that was current in " +
           short_place(*finding.traffic->copy) + ".";
  }
  std::string text =
      "Wait for the copy before this line: record an event behind the copy and call `event.synchronize()`, or call "
      "`torch.cuda.current_stream().synchronize()`.";
  if (finding.traffic->race == trace::RaceKind::host_wrote_source) {
    return text + " Or write the next values into another buffer.";
  }
  return text + " Or leave `non_blocking=True` out in " + short_place(*finding.traffic->copy) + ".";
}

}  // namespace

std::optional<Explanation> copy_still_running(const Finding& finding) {
  if (finding.kind != Kind::async_race || !finding.where || !finding.traffic->copy) return std::nullopt;
  const Frame& copy = *finding.traffic->copy;
  const std::string where = finding.traffic->to_host ? "to the host" : "to the device";
  std::string why = "This line asks for an asynchronous copy " + where +
                    ". Nothing that comes after it waits for it until " + what_raced(finding.traffic->race) + ", in " +
                    short_place(*finding.where) + ".";
  return Explanation{RootCause{copy.file, copy.line, copy.function, "", std::move(why)},
                     Fix{finding.where->file, finding.where->line, wait_for_it(finding)}};
}

}  // namespace devsan::report::why
