#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/render/page_data.h"
#include "report/render/render_json_parts.h"

namespace devsan::report {
namespace {

// How much of something a page has room for: of all owners together, and the least that each keeps.
struct Room {
  std::size_t all;
  std::size_t least;

  std::size_t of_each(std::size_t owners) const { return std::max(least, all / std::max<std::size_t>(owners, 1)); }
};

constexpr Room kPointRoom{120'000, 24};   // of curves
constexpr Room kOperatorRoom{64'000, 8};  // of threads
constexpr Room kStepRoom{60'000, 32};     // of processes
constexpr Room kPlaceRoom{32'000, 4};     // of devices at their peaks

class TextNumbers {
 public:
  std::size_t number_of(const std::string& text) {
    const auto [at, is_new] = numbers_.try_emplace(text, list_.size());
    if (is_new) list_.push_back(text);
    return at->second;
  }
  Json list() const { return list_; }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::string> list_;
};

Json packed_thread(const Thread& thread, std::size_t room, TextNumbers& texts) {
  const std::size_t shown = std::min(room, thread.last.size());
  Json last = Json::array();
  for (const LastOperator& op : std::span(thread.last).first(shown)) {
    last.push_back(texts.number_of(op.op));
    last.push_back(texts.number_of(op.at.file));
    last.push_back(op.at.line);
    last.push_back(texts.number_of(op.at.function));
    last.push_back(op.step);
  }
  return {{"tid", thread.tid},
          {"name", thread.name},
          {"operators", thread.operators},
          {"last", std::move(last)},
          {"more", thread.last.size() - shown}};
}

// Which of `count` points are shown where there is room for `room`: evenly spread ones, the first, the last, and
// `kept`.
std::vector<std::size_t> spread_points(std::size_t count, std::size_t room, std::size_t kept) {
  std::vector<std::size_t> chosen;
  const std::size_t stride = (count + room - 1) / std::max<std::size_t>(room, 1);
  for (std::size_t i = 0; i < count; i += std::max<std::size_t>(stride, 1)) chosen.push_back(i);
  for (const std::size_t one : {kept, count - 1}) {
    const auto at = std::ranges::lower_bound(chosen, one);
    if (one < count && (at == chosen.end() || *at != one)) chosen.insert(at, one);
  }
  return chosen;
}

// With the peak, which the caption of the curve names, even where the curve was shortened before and has it no more.
std::vector<MemoryPoint> shown_points(const MemoryCurve& curve, std::size_t room) {
  const auto peak = std::ranges::lower_bound(curve.points, curve.peak.time_ns, {}, &MemoryPoint::time_ns);
  const auto place = static_cast<std::size_t>(peak - curve.points.begin());
  std::vector<MemoryPoint> shown;
  for (const std::size_t i : spread_points(curve.points.size(), room, place)) shown.push_back(curve.points[i]);
  const auto at = std::ranges::lower_bound(shown, curve.peak.time_ns, {}, &MemoryPoint::time_ns);
  const bool between = at != shown.begin() && at != shown.end();
  if (between && at->time_ns != curve.peak.time_ns) shown.insert(at, curve.peak);
  return shown;
}

std::int64_t since_begin(std::int64_t time_ns, const Run& run) {
  return (time_ns - run.start_ns) / 1'000'000;
}

Json curve_columns(const MemoryCurve& curve, std::size_t room, const Run& run) {
  Json json = {{"device", text_or_null(curve.device)}, {"points", curve.points.size()}};
  if (curve.clock != trace::SeriesClock::iterations) json["clock"] = name_of(curve.clock);
  json["peak"] = {{"step", curve.peak.step},
                  {"used", curve.peak.used},
                  {"held", curve.peak.held},
                  {"time", since_begin(curve.peak.time_ns, run)}};
  for (const char* column : {"step", "used", "held", "time"}) json[column] = Json::array();
  for (const MemoryPoint& point : shown_points(curve, room)) {
    json["step"].push_back(point.step);
    json["used"].push_back(point.used);
    json["held"].push_back(point.held);
    json["time"].push_back(since_begin(point.time_ns, run));
  }
  return json;
}

Json row_numbers(std::span<const LiveMemory::Row> rows, TextNumbers& texts) {
  Json numbers = Json::array();
  for (const LiveMemory::Row& row : rows) {
    numbers.push_back(texts.number_of(std::string(name_of(row.kind))));
    numbers.push_back(texts.number_of(row.op));
    numbers.push_back(texts.number_of(row.at.file));
    numbers.push_back(row.at.line);
    numbers.push_back(row.bytes);
    numbers.push_back(row.tensors);
  }
  return numbers;
}

Json peaks_json(const std::vector<PeakMemory>& peaks, std::size_t room, TextNumbers& texts) {
  Json json = Json::array();
  for (const PeakMemory& peak : peaks) {
    Json one = peak_memory_json(peak);
    one.erase("time");
    one["by_place"] = row_numbers(std::span(peak.by_place).first(std::min(room, peak.by_place.size())), texts);
    json.push_back(std::move(one));
  }
  return json;
}

std::uint64_t length_of(const StepTimes::Step& step) {
  return step.forward_ns + step.backward_ns + step.between_ns + step.optimizer_ns + step.rest_ns + step.data_ns;
}

// The phase that a step was in which has not ended: the first that has no length yet.
std::uint64_t& open_phase(StepTimes::Step& step) {
  if (step.forward_ns == 0) return step.forward_ns;
  if (step.backward_ns == 0) return step.backward_ns;
  return step.optimizer_ns == 0 ? step.between_ns : step.rest_ns;
}

// A step has the time of a phase once that is over. One that failed lasted up to the error at least.
std::vector<StepTimes::Step> steps_up_to_error(const Process& process) {
  std::vector<StepTimes::Step> steps = process.step_times.steps;
  if (steps.empty()) return steps;
  StepTimes::Step& last = steps.back();
  const std::int64_t end = last.begin_ns + static_cast<std::int64_t>(length_of(last));
  if (process.first_error_ns > end) open_phase(last) += static_cast<std::uint64_t>(process.first_error_ns - end);
  return steps;
}

// Times are whole microseconds, from the begin of the run and of the phase before.
Json step_columns(const Process& process, std::size_t room, const Run& run) {
  const StepTimes& times = process.step_times;
  if (times.steps.empty()) return nullptr;
  using Step = StepTimes::Step;
  const std::vector<Step> steps = steps_up_to_error(process);
  const auto longest = std::ranges::max_element(steps, {}, length_of);
  const auto kept = static_cast<std::size_t>(longest - steps.begin());
  const std::vector<std::size_t> shown = spread_points(steps.size(), room, kept);
  const auto column = [&](auto&& value) {
    Json json = Json::array();
    for (const std::size_t i : shown) json.push_back(value(steps[i]));
    return json;
  };
  const auto microseconds = [&](std::uint64_t Step::*length) {
    return column([=](const Step& step) { return step.*length / 1'000; });
  };
  return {{"taken", times.taken},
          {"step", column([](const Step& step) { return step.step; })},
          {"begin", column([&](const Step& step) { return (step.begin_ns - run.start_ns) / 1'000; })},
          {"forward", microseconds(&Step::forward_ns)},
          {"backward", microseconds(&Step::backward_ns)},
          {"between", microseconds(&Step::between_ns)},
          {"optimizer", microseconds(&Step::optimizer_ns)},
          {"rest", microseconds(&Step::rest_ns)},
          {"data", times.data_is_told ? microseconds(&Step::data_ns) : Json(nullptr)}};
}

// When a thread waited for one of the last collectives, or the process was in one that failed, or did not end: then as
// long as the process lived.
Json wait_columns(const Process& process, const Run& run, TextNumbers& texts) {
  Json json = {{"begin", Json::array()}, {"length", Json::array()}, {"name", Json::array()}};
  const std::int64_t last_ns = process.ended_ns > 0 ? process.ended_ns : run.last_ns;
  for (const CollectiveCall& call : process.last_collectives) {
    const bool ended = call.finished_ns > 0 || !call.end_told;
    const bool well = ended && call.state != "failed";
    const std::int64_t begin = call.wait_ns > 0 || well ? call.wait_ns : call.entered_ns;
    const std::int64_t end = ended ? call.finished_ns : last_ns;
    if (begin <= 0 || end <= begin) continue;
    json["begin"].push_back((begin - run.start_ns) / 1'000);
    json["length"].push_back((end - begin) / 1'000);
    json["name"].push_back(texts.number_of(call.name));
  }
  return json["begin"].empty() ? Json(nullptr) : json;
}

}  // namespace

Json page_operators(const Run& run) {
  std::size_t count = 0;
  for (const Process& process : run.processes) count += process.threads.size();
  const std::size_t room = kOperatorRoom.of_each(count);
  TextNumbers texts;
  Json processes = Json::array();
  for (const Process& process : run.processes) {
    Json threads = Json::array();
    for (const Thread& thread : process.threads) threads.push_back(packed_thread(thread, room, texts));
    processes.push_back(std::move(threads));
  }
  return {{"texts", texts.list()}, {"processes", std::move(processes)}};
}

Json page_memory(const Run& run) {
  std::size_t curves = 0;
  std::size_t devices = 0;
  for (const Process& process : run.processes) {
    curves += process.memory.size();
    devices += process.peak_memory.size();
  }
  const std::size_t places = kPlaceRoom.of_each(devices);
  const std::size_t room = kPointRoom.of_each(curves);
  TextNumbers texts;
  Json processes = Json::array();
  Json peaks = Json::array();
  for (const Process& process : run.processes) {
    Json json = Json::array();
    for (const MemoryCurve& curve : process.memory) json.push_back(curve_columns(curve, room, run));
    processes.push_back(std::move(json));
    peaks.push_back(peaks_json(process.peak_memory, places, texts));
  }
  return {{"texts", texts.list()}, {"processes", std::move(processes)}, {"peaks", std::move(peaks)}};
}

Json page_timeline(const Run& run) {
  const auto has_steps = [](const Process& process) { return !process.step_times.steps.empty(); };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(run.processes, has_steps));
  const std::size_t room = kStepRoom.of_each(count);
  TextNumbers texts;
  Json processes = Json::array();
  Json waits = Json::array();
  for (const Process& process : run.processes) {
    processes.push_back(step_columns(process, room, run));
    waits.push_back(wait_columns(process, run, texts));
  }
  return {{"texts", texts.list()}, {"processes", std::move(processes)}, {"waits", std::move(waits)}};
}

}  // namespace devsan::report
