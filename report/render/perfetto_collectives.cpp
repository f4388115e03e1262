#include "report/render/perfetto_collectives.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "report/model/frames.h"

namespace devsan::report {
namespace {

constexpr std::uint64_t kFirstGroupTrack = 2'000'001'000;
constexpr int kGroupOrder = 500;

// One rank's part in a collective, in common times.
struct RankSpan {
  Track track;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// One collective of all ranks of a group.
using Which = std::tuple<int, std::string, const std::vector<int>*, std::uint64_t>;
using Spans = std::map<Which, std::vector<RankSpan>>;

// One that never ended lasts up to the last thing that is known of its process.
std::int64_t end_of(const CollectiveCall& call, const Process& process, std::int64_t last_ns) {
  if (call.finished_ns > 0) return call.finished_ns;
  return std::max({call.entered_ns + 1000, call.wait_ns, process.ended_ns > 0 ? process.ended_ns : last_ns});
}

void add_slices(std::size_t index, const Run& run, PerfettoEvents& events, Spans& spans) {
  const Process& process = run.processes[index];
  std::map<std::string, std::vector<const CollectiveCall*>> groups;
  for (auto call = process.last_collectives.rbegin(); call != process.last_collectives.rend(); ++call) {
    if (call->entered_ns > 0) groups[call->group].push_back(&*call);
  }
  std::uint64_t number = kFirstGroupTrack;
  for (auto& [group, calls] : groups) {
    const Track track{index, number++};
    events.name_thread(track, "collectives of " + (group.empty() ? std::string("a group") : group), kGroupOrder);
    std::ranges::stable_sort(calls, {}, &CollectiveCall::entered_ns);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const CollectiveCall& call = *calls[i];
      std::int64_t end = end_of(call, process, run.last_ns);
      // Those of one group follow each other; asynchronous ones are told finished late.
      if (i + 1 < calls.size()) end = std::min(end, calls[i + 1]->entered_ns);
      events.slice(track, call.name, call.entered_ns, end,
                   {{"sequence", call.sequence},
                    {"bytes", call.bytes},
                    {"dtype", text_or_null(call.dtype)},
                    {"device", text_or_null(call.device)},
                    {"state", call.state},
                    {"step", call.step},
                    {"at", call.where ? Json(call.where->file + ":" + std::to_string(call.where->line)) : Json()}});
      if (call.sequence == 0) continue;
      spans[{process.attempt.value_or(0), call.group, call.group_ranks.get(), call.sequence}].push_back(
          {track, events.common_ns(index, call.entered_ns), events.common_ns(index, end)});
    }
  }
}

}  // namespace

void add_collectives(const Run& run, PerfettoEvents& events) {
  Spans spans;
  for (std::size_t i = 0; i < run.processes.size(); ++i) add_slices(i, run, events, spans);
  std::uint64_t id = 0;
  for (const auto& [which, some] : spans) {
    const auto last = std::ranges::max_element(some, {}, &RankSpan::begin_ns);
    for (auto span = some.begin(); span != some.end(); ++span) {
      if (span == last || span->end_ns <= last->begin_ns) continue;
      events.arrow(++id, "collective", last->track, last->begin_ns, span->track,
                   std::max(last->begin_ns, span->end_ns - 1));
    }
  }
}

}  // namespace devsan::report
