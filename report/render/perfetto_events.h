// Events of the Chrome trace format, written one after the other.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "report/model/run.h"
#include "report/render/render_json_parts.h"

namespace devsan::report {

// A process of the trace and a thread in it. Pids of several hosts may be equal: these are devsan's own numbers.
struct Track {
  std::size_t process = 0;
  std::uint64_t thread = 0;
};

class PerfettoEvents {
 public:
  // Times are told from the start of the run, by one clock. The run outlives this.
  explicit PerfettoEvents(const Run& run);

  std::int64_t origin_ns() const { return origin_ns_; }
  // A time of a process by that clock.
  std::int64_t common_ns(std::size_t process, std::int64_t time_ns) const;

  void name_process(std::size_t process, const std::string& name, std::int64_t order);
  void name_thread(Track track, const std::string& name, int order);
  void slice(Track track, const std::string& name, std::int64_t begin_ns, std::int64_t end_ns, Json args);
  void mark(Track track, const std::string& name, const std::string& category, std::int64_t time_ns, Json args);
  void counter(std::size_t process, const std::string& name, std::int64_t time_ns, Json values);
  // An arrow from one slice to another: each end lies in a slice of its track. Its times are common ones.
  void arrow(std::uint64_t id, const std::string& name, Track from, std::int64_t from_ns, Track to, std::int64_t to_ns);
  std::string take(const Json& about);

 private:
  double microseconds(std::int64_t common_ns) const;
  double microseconds(Track track, std::int64_t time_ns) const;
  Json event(const char* phase, Track track, const std::string& name) const;
  void add(const Json& event);

  const Run& run_;
  std::int64_t origin_ns_ = 0;
  std::string events_;
};

}  // namespace devsan::report
