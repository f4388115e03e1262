#include "report/findings/restarts.h"

#include <algorithm>
#include <limits>

namespace devsan::report {
namespace {

bool is_elsewhere(const Process& earlier, const Process& later) {
  return earlier.host != later.host || earlier.node != later.node;
}

// A rank that is in another place, or among another number of ranks, is that of another attempt.
bool is_moved(const Process& earlier, const Process& later) {
  const bool resized = earlier.world_size && later.world_size && earlier.world_size != later.world_size;
  return is_elsewhere(earlier, later) || resized;
}

}  // namespace

void Restarts::add(const std::vector<Process>& processes, const std::vector<std::size_t>& workers,
                   const HostClocks& clocks) {
  for (std::size_t i = 1; i < workers.size(); ++i) {
    const Process& earlier = processes[workers[i - 1]];
    const Process& later = processes[workers[i]];
    if (!earlier.attempt || !later.attempt || !earlier.ended.value_or(true)) continue;
    Restart restart;
    restart.from_ns = clocks.common(std::max(earlier.start_ns, earlier.ended_ns), earlier.host);
    restart.to_ns = clocks.common(later.start_ns, later.host);
    if (restart.from_ns > restart.to_ns) continue;  // beside each other
    const bool counted = !is_elsewhere(earlier, later) && *later.attempt > *earlier.attempt;
    const bool moved = is_moved(earlier, later);
    if (counted) restart.counted = *later.attempt - *earlier.attempt;
    moved_ = moved_ || (moved && !counted);
    (counted || moved ? restarts_ : unsure_).push_back(restart);
  }
}

bool Restarts::are_counted_differently() const {
  return moved_ || std::ranges::any_of(unsure_, [this](const Restart& one) {
           return std::ranges::any_of(restarts_, [&](const Restart& other) { return other.overlaps(one); });
         });
}

// Those that overlap are of different ranks in one restart of the job.
void Restarts::unite() {
  std::ranges::sort(restarts_, {}, &Restart::to_ns);
  std::vector<Restart> united;
  for (const Restart& one : restarts_) {
    if (united.empty() || one.from_ns >= united.back().to_ns) {
      united.push_back(one);
      continue;
    }
    united.back().from_ns = std::max(united.back().from_ns, one.from_ns);
    united.back().counted = std::max(united.back().counted, one.counted);
  }
  restarts_ = std::move(united);
}

void Restarts::number(std::vector<Process>& processes, const std::vector<std::size_t>& worker,
                      const HostClocks& clocks) {
  unite();
  int first = std::numeric_limits<int>::max();
  for (const Process& process : processes) first = std::min(first, process.attempt.value_or(first));
  for (std::size_t i = 0; i < processes.size(); ++i) {
    Process& process = processes[i];
    if (!process.attempt || worker[i] != i) continue;
    const std::int64_t start = clocks.common(process.start_ns, process.host);
    int attempt = first;
    for (const Restart& restart : restarts_) {
      if (start > restart.from_ns) attempt += restart.counted;
    }
    process.attempt = attempt;
  }
}

}  // namespace devsan::report
