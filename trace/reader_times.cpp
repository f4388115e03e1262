// Times of a damaged trace are any 64 bits. What reads them adds and subtracts them, so they are bounded here, once.
#include <algorithm>
#include <limits>

#include "trace/reader_loader.h"

namespace devsan::trace {
namespace {

// The difference of two fits, and so does a sum of two.
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max() / 2;

void bound(std::int64_t& time_ns) {
  time_ns = std::clamp<std::int64_t>(time_ns, 0, kLatest);
}

template <class Record>
void bound_times(Record& record) {
  if constexpr (requires { record.fixed; }) bound_times(record.fixed);
  if constexpr (requires { bound(record.time_ns); }) bound(record.time_ns);
  if constexpr (requires { bound(record.begin_ns); }) bound(record.begin_ns);
}

void bound_times(CollectiveEntry& entry) {
  bound(entry.facts.entered_ns);
  bound(entry.finished_ns);
  bound(entry.wait_ns);
}

template <class Series>
void bound_all(Series& series) {
  for (auto& record : series) bound_times(record);
}

template <class... Series>
void bound_each(Series&... series) {
  (bound_all(series), ...);
}

}  // namespace

void bound_header_times(FileHeader& header) {
  bound(header.start_time_ns);
  bound(header.end_time_ns);
}

void TraceFile::Loader::bound_all_times() {
  bound_header_times(file_.header_);
  bound_each(file_.meetings_, file_.traffic_, file_.notices_, file_.child_ends_, file_.attribute_writes_,
             file_.placements_, file_.settings_, file_.last_calls_.last, file_.step_series_.steps, file_.peak_memory_,
             file_.live_memory_, file_.collectives_.last, file_.failures_, file_.waiting_stacks_, file_.long_waits_);
  for (MemorySeries& series : file_.memory_series_) {
    bound_all(series.samples);
    if (series.peak) bound_times(*series.peak);
  }
  for (SiteMemory& site : file_.site_memory_) bound_all(site.samples);
  if (file_.step_series_.longest) bound_times(*file_.step_series_.longest);
  if (file_.step_series_.current) bound_times(*file_.step_series_.current);
}

}  // namespace devsan::trace
