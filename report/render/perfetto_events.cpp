#include "report/render/perfetto_events.h"

#include <algorithm>

namespace devsan::report {

PerfettoEvents::PerfettoEvents(const Run& run) : run_(run) {
  for (std::size_t i = 0; i < run.processes.size(); ++i) {
    const std::int64_t start = common_ns(i, run.processes[i].start_ns);
    if (start > 0 && (origin_ns_ == 0 || start < origin_ns_)) origin_ns_ = start;
  }
}

std::int64_t PerfettoEvents::common_ns(std::size_t process, std::int64_t time_ns) const {
  return run_.clocks.common(time_ns, run_.processes[process].host);
}

double PerfettoEvents::microseconds(std::int64_t common_ns) const {
  return common_ns > origin_ns_ ? static_cast<double>(common_ns - origin_ns_) / 1000 : 0;
}

double PerfettoEvents::microseconds(Track track, std::int64_t time_ns) const {
  return microseconds(common_ns(track.process, time_ns));
}

Json PerfettoEvents::event(const char* phase, Track track, const std::string& name) const {
  return {{"ph", phase}, {"pid", track.process + 1}, {"tid", track.thread}, {"name", name}};
}

void PerfettoEvents::add(const Json& event) {
  events_ += events_.empty() ? "" : ",\n";
  events_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void PerfettoEvents::name_process(std::size_t process, const std::string& name, std::int64_t order) {
  Json named = event("M", {process, 0}, "process_name");
  named["args"] = {{"name", name}};
  add(named);
  Json sorted = event("M", {process, 0}, "process_sort_index");
  sorted["args"] = {{"sort_index", order}};
  add(sorted);
}

void PerfettoEvents::name_thread(Track track, const std::string& name, int order) {
  Json named = event("M", track, "thread_name");
  named["args"] = {{"name", name}};
  add(named);
  Json sorted = event("M", track, "thread_sort_index");
  sorted["args"] = {{"sort_index", order}};
  add(sorted);
}

void PerfettoEvents::slice(Track track, const std::string& name, std::int64_t begin_ns, std::int64_t end_ns,
                           Json args) {
  Json one = event("X", track, name);
  one["ts"] = microseconds(track, begin_ns);
  one["dur"] = std::max(0.0, microseconds(track, end_ns) - microseconds(track, begin_ns));
  one["args"] = std::move(args);
  add(one);
}

void PerfettoEvents::mark(Track track, const std::string& name, const std::string& category, std::int64_t time_ns,
                          Json args) {
  Json one = event("i", track, name);
  one["cat"] = category;
  one["ts"] = microseconds(track, time_ns);
  one["s"] = "t";
  one["args"] = std::move(args);
  add(one);
}

void PerfettoEvents::counter(std::size_t process, const std::string& name, std::int64_t time_ns, Json values) {
  Json one = event("C", {process, 0}, name);
  one["ts"] = microseconds(Track{process, 0}, time_ns);
  one["args"] = std::move(values);
  add(one);
}

void PerfettoEvents::arrow(std::uint64_t id, const std::string& name, Track from, std::int64_t from_ns, Track to,
                           std::int64_t to_ns) {
  Json begin = event("s", from, name);
  begin["cat"] = "collective";
  begin["id"] = id;
  begin["ts"] = microseconds(from_ns);
  add(begin);
  Json end = event("f", to, name);
  end["cat"] = "collective";
  end["id"] = id;
  end["bp"] = "e";
  end["ts"] = microseconds(to_ns);
  add(end);
}

std::string PerfettoEvents::take(const Json& about) {
  std::string text = "{\"displayTimeUnit\": \"ms\",\n\"otherData\": ";
  text += about.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text + ",\n\"traceEvents\": [\n" + events_ + "\n]}\n";
}

}  // namespace devsan::report
