// An asynchronous copy returns before it has run. Who touches its memory next must wait for it: the host for its
// stream, another stream for an event behind it.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "report/causes/traffic_causes.h"
#include "report/model/call_text.h"
#include "report/model/frames.h"
#include "report/wording/traffic_text.h"
#include "trace/code_paths.h"
#include "trace/words.h"

namespace devsan::report::traffic_causes {
namespace {

bool is_about_streams(trace::RaceKind race) {
  return race == trace::RaceKind::stream_used_target || race == trace::RaceKind::stream_wrote_source;
}

bool is_of_program(const Frame& place) {
  const bool has_text = !place.file.starts_with('<') || trace::is_written_text(place.file);
  return place.line > 0 && !place.torch && !place.library && has_text;
}

// What a call gives for an argument: by its name, or by position as a variable of that name. Empty where neither; the
// name itself where `**options` may hold it.
std::string_view given_for(std::string_view text, std::string_view name) {
  const auto call = split_call(text);
  if (!call || call->subscript) return {};
  bool unpacks = false;
  for (const ArgumentText& one : call->arguments) {
    if (one.keyword == name || (one.keyword.empty() && one.text == name)) return one.text;
    unpacks = unpacks || one.text.starts_with("**");
  }
  return unpacks ? name : std::string_view();
}

bool is_variable(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(text, trace::is_word);
}

// The copy itself, as a step of what was touched; null where it is none of that.
const LineageStep* step_of_copy(const Finding& finding) {
  for (const Operand& operand : finding.operands) {
    for (const LineageStep& step : operand.lineage) {
      if (step.how == trace::How::moved && same_line(step.at, *finding.traffic->copy)) return &step;
    }
  }
  return nullptr;
}

// A function that copies as it is told, `x.to(device, non_blocking=non_blocking)`, is called by those who wait and by
// those who do not: the call that says True has to wait. Where none is known to, the copy.
const Frame& asked_at(const Finding& finding) {
  const Frame& copy = *finding.traffic->copy;
  const LineageStep* step = step_of_copy(finding);
  if (step == nullptr) return copy;
  std::string name(given_for(call_at(step->at), "non_blocking"));
  const Frame* inner = &step->at;
  for (const Frame& call : step->calls) {
    if (!is_variable(name)) return copy;
    // A comprehension is called by the function that it stands in.
    const bool comprehension = same_function(call, *inner) && inner->function != call.function;
    inner = &call;
    if (comprehension) continue;
    const std::string text = call_at(call);
    const std::string_view given = given_for(text, name);
    if (given == "True") return is_of_program(call) ? call : copy;
    name = given;
  }
  return copy;
}

std::string wait_for_it(const Finding& finding, const Frame& asked) {
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
  return text + " Or leave `non_blocking=True` out in " + short_place(asked) + ".";
}

// What a copy to the host has filled, a stream can only copy back: that line takes up what was sent away, on a stream
// of its choice, and the one that sent it away cannot know of that.
std::optional<TrafficCause> taken_back_early(const Finding& finding, const Frame& copy) {
  const bool back = finding.traffic->to_host && finding.traffic->race == trace::RaceKind::stream_used_target;
  if (!back || !is_of_program(*finding.where)) return std::nullopt;
  const Frame& where = *finding.where;
  return TrafficCause{RootCause{where.file, where.line, where.function, "",
                                "This line takes to the device what " + short_place(copy) +
                                    " copies to the host, asynchronously. It runs on another stream, and nothing "
                                    "makes that wait until the copy to the host is over."},
                      Fix{where.file, where.line, wait_for_it(finding, copy)}};
}

}  // namespace

std::optional<TrafficCause> copy_still_running(const Finding& finding) {
  if (finding.kind != Kind::async_race || !finding.where || !finding.traffic->copy) return std::nullopt;
  const Frame& copy = *finding.traffic->copy;
  if (auto back = taken_back_early(finding, copy)) return back;
  const Frame& asked = asked_at(finding);
  std::string why = std::string("This line asks for an asynchronous copy ") +
                    (finding.traffic->to_host ? "to the host" : "to the device");
  if (!same_line(asked, copy)) why += ", which " + short_place(copy) + " makes";
  why += ". Nothing waits for that before " + use_in_race(finding.traffic->race, "its target", "its source") + ", in " +
         short_place(*finding.where) + ".";
  return TrafficCause{RootCause{asked.file, asked.line, asked.function, "", std::move(why)},
                      Fix{finding.where->file, finding.where->line, wait_for_it(finding, asked)}};
}

}  // namespace devsan::report::traffic_causes
