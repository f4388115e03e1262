#include "report/findings/collective_logs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "report/model/collective_names.h"
#include "report/model/frames.h"

namespace devsan::report {
namespace {

constexpr std::size_t kKeptLast = 32;
constexpr std::size_t kKeptOpen = 32;
constexpr std::size_t kComparedRanks = 8;  // of the host whose clock counts

// Of these no rank comes back before every rank has entered.
bool waits_for_all(const std::string& op) {
  constexpr std::array<std::string_view, 7> kAll = {
      "c10d::allreduce_",          "c10d::allgather_", "c10d::_allgather_base_",
      "c10d::reduce_scatter_",     "c10d::barrier",    "c10d::_reduce_scatter_base_",
      "c10d::allreduce_coalesced_"};
  return std::ranges::find(kAll, op) != kAll.end();
}

std::vector<int> ranks_of(const trace::CollectiveGroup& group, int world_size) {
  std::vector<int> ranks(group.ranks.begin(), group.ranks.end());
  if (!ranks.empty() || group.fixed.size <= 0 || group.fixed.size != world_size) return ranks;
  for (int rank = 0; rank < group.fixed.size; ++rank) ranks.push_back(rank);
  return ranks;
}

// The group of all ranks is the largest that the process is in, where its environment did not say how many there are.
int world_size_of(const trace::TraceFile& trace) {
  int size = trace.header().world_size;
  for (const trace::CollectiveGroup& group : trace.collective_groups()) size = std::max(size, group.fixed.size);
  return size;
}

GroupKey key_of(const trace::TraceFile& trace, const trace::CollectiveGroup& group) {
  return {std::string(trace.string(group.fixed.name)), group.fixed.again, ranks_of(group, world_size_of(trace))};
}

// The interpreter tells of its threads from the newest to the first.
void add_stacks(const trace::TraceFile& trace, RankLog& log) {
  for (const trace::WaitingStack& stack : trace.waiting_stacks()) {
    log.stuck_ns = stack.fixed.time_ns;
    log.stuck_in = stack.fixed.collective;
    if (stack.frames.empty()) continue;
    ThreadStack thread{std::string(trace.string(stack.fixed.thread_name)), stack.fixed.tid,
                       frames_of(trace, stack.frames)};
    log.threads.insert(log.threads.begin(), std::move(thread));
  }
}

// When the process is known to have lived last.
std::int64_t last_seen(const trace::TraceFile& trace, const Process& process) {
  std::int64_t last = std::max(process.start_ns, process.ended_ns);
  if (process.uncaught) last = std::max(last, process.uncaught->time_ns);
  if (!process.step_times.steps.empty()) last = std::max(last, process.step_times.steps.back().begin_ns);
  for (const trace::CollectiveEntry& entry : trace.collectives().last) {
    last = std::max({last, entry.facts.entered_ns, entry.finished_ns});
  }
  return last;
}

// Where the clocks of two hosts may be apart: bounds of what is to be added to the second.
struct Bounds {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();

  void add(const EnteredCollective& reference, const EnteredCollective& other) {
    if (!reference.is_over() || !other.is_over()) return;
    high = std::min(high, reference.finished_ns - other.entered_ns);
    low = std::max(low, reference.entered_ns - other.finished_ns);
  }

  std::int64_t offset() const {
    // A clock that was never set says 1970. What is further apart comes of a damaged trace.
    constexpr std::int64_t kFurthest = 2'000'000'000'000'000'000;
    const std::int64_t apart = middle();
    return apart >= -kFurthest && apart <= kFurthest ? apart : 0;
  }

 private:
  std::int64_t middle() const {
    if (low > high || (low <= 0 && high >= 0)) return 0;
    if (low == std::numeric_limits<std::int64_t>::min()) return high;
    if (high == std::numeric_limits<std::int64_t>::max()) return low;
    return low + (high - low) / 2;
  }
};

void compare_clocks(const RankLog& reference, const RankLog& other, Bounds& bounds) {
  for (const auto& [key, log] : reference.groups) {
    const auto same = other.groups.find(key);
    if (same == other.groups.end()) continue;
    for (const auto& [number, collective] : log.by_number) {
      const auto twin = same->second.by_number.find(number);
      if (twin != same->second.by_number.end() && waits_for_all(*collective.op) && *twin->second.op == *collective.op) {
        bounds.add(collective, twin->second);
      }
    }
  }
}

std::string_view name_of_state(trace::CollectiveState state) {
  switch (state) {
    case trace::CollectiveState::none:
    case trace::CollectiveState::entered:
      return "entered";
    case trace::CollectiveState::issued:
      return "issued";
    case trace::CollectiveState::finished:
      return "finished";
    case trace::CollectiveState::failed:
      return "failed";
  }
  return "entered";
}

}  // namespace

// A failure is an end that somebody told, whatever the backend does.
bool waits_in(const EnteredCollective* entry) {
  if (entry == nullptr || entry->is_over()) return false;
  return entry->state == trace::CollectiveState::failed || !trace::ends_unseen(entry->flags);
}

void CollectiveLogs::add(const trace::TraceFile& trace, const Process& process) {
  if (!process.rank) return;
  RankProcess one{process.host,
                  process.pid,
                  process.parent_pid,
                  text(process.command),
                  process.start_ns,
                  last_seen(trace, process),
                  !trace.collective_groups().empty()};
  one.idle = process.operators == 0 && trace.failures().empty();
  if (!processes_[*process.rank].add(std::move(one))) return;
  RankLog log;
  log.rank = *process.rank;
  log.pid = process.pid;
  log.host = process.host;
  log.start_ns = process.start_ns;
  add_stacks(trace, log);
  add_collectives(trace, log);
  ranks_[log.rank] = std::move(log);
}

void CollectiveLogs::add_collectives(const trace::TraceFile& trace, RankLog& log) {
  std::map<std::uint32_t, const GroupKey*> groups;
  for (const trace::CollectiveGroup& group : trace.collective_groups()) {
    const GroupKey* const key = &*groups_.insert(key_of(trace, group)).first;
    groups[group.fixed.index] = key;
    log.groups[key];
  }
  std::map<const GroupKey*, std::size_t> seen;
  for (const trace::CollectiveEntry& entry : trace.collectives().last) {  // newest first
    const auto group = groups.find(entry.facts.group);
    if (group == groups.end()) continue;
    if (!log.last) {
      log.last = entered(trace, entry);
      log.last_group = group->second;
    }
    if (entry.facts.sequence == 0) continue;
    GroupLog& of_group = log.groups[group->second];
    of_group.entered = std::max(of_group.entered, entry.facts.sequence);
    const bool open = entry.state != trace::CollectiveState::finished;
    if (seen[group->second]++ >= kKeptLast && !open) continue;
    of_group.by_number.insert_or_assign(entry.facts.sequence, entered(trace, entry));
    // The first that are not over matter, rather than those behind them.
    if (of_group.by_number.size() > kKeptLast + kKeptOpen) {
      auto after_open = of_group.by_number.begin();
      std::advance(after_open, kKeptOpen);
      of_group.by_number.erase(after_open);
    }
  }
  if (log.stuck_ns != 0) add_long_waits(trace, groups, log);
}

// Of the collectives around a long wait: the one in which it was noticed, and which one each group came to next.
void CollectiveLogs::add_long_waits(const trace::TraceFile& trace,
                                    const std::map<std::uint32_t, const GroupKey*>& groups, RankLog& log) {
  std::vector<trace::CollectiveEntry> entries = trace.long_waits();
  entries.insert(entries.end(), trace.collectives().last.begin(), trace.collectives().last.end());
  std::map<const GroupKey*, const trace::CollectiveEntry*> next;
  const auto keep = [&](const GroupKey* group, const trace::CollectiveEntry& entry) {
    GroupLog& of_group = log.groups[group];
    of_group.by_number.try_emplace(entry.facts.sequence, entered(trace, entry));
    of_group.entered = std::max(of_group.entered, entry.facts.sequence);
  };
  for (const trace::CollectiveEntry& entry : entries) {
    const auto group = groups.find(entry.facts.group);
    if (group == groups.end() || entry.facts.sequence == 0) continue;
    if (log.stuck_in != 0 && entry.number == static_cast<std::uint32_t>(log.stuck_in)) {
      keep(group->second, entry);
      log.stuck_at = {group->second, entry.facts.sequence};
    } else if (entry.facts.entered_ns >= log.stuck_ns) {
      const trace::CollectiveEntry*& first = next[group->second];
      if (first == nullptr || entry.facts.entered_ns < first->facts.entered_ns) first = &entry;
    }
  }
  for (const auto& [group, entry] : next) keep(group, *entry);
}

const std::string* CollectiveLogs::text(std::string_view text) {
  const auto known = texts_.find(text);
  return known != texts_.end() ? &*known : &*texts_.emplace(text).first;
}

const Frame* CollectiveLogs::frame(const trace::TraceFile& trace, trace::SiteId site) {
  std::optional<Frame> frame = user_frame_of(trace, site);
  if (!frame) return nullptr;
  const std::string place = frame->file + ":" + std::to_string(frame->line) + ":" + std::to_string(frame->column) +
                            ":" + frame->function + ":" + frame->source;
  const auto [known, is_new] = frame_by_place_.try_emplace(place, nullptr);
  if (is_new) known->second = &frames_.emplace_back(std::move(*frame));
  return known->second;
}

EnteredCollective CollectiveLogs::entered(const trace::TraceFile& trace, const trace::CollectiveEntry& entry) {
  EnteredCollective collective;
  collective.op = text(trace.operator_name(entry.facts.op));
  collective.dtype = text(trace.string(entry.facts.dtype));
  collective.device = text(trace.device_name(entry.facts.device));
  collective.at = frame(trace, entry.facts.site);
  collective.sequence = entry.facts.sequence;
  collective.bytes = entry.facts.bytes;
  collective.other_bytes = entry.facts.other_bytes;
  collective.step = entry.facts.step;
  collective.state = entry.state;
  collective.flags = entry.flags;
  collective.entered_ns = entry.facts.entered_ns;
  collective.finished_ns = entry.finished_ns;
  return collective;
}

HostClocks CollectiveLogs::clocks() const {
  HostClocks clocks;
  if (ranks_.empty()) return clocks;
  const std::string& reference = ranks_.begin()->second.host;
  std::vector<const RankLog*> there;
  for (const auto& [rank, log] : ranks_) {
    if (log.host == reference && there.size() < kComparedRanks) there.push_back(&log);
  }
  std::map<std::string, Bounds> bounds;
  for (const auto& [rank, log] : ranks_) {
    if (log.host == reference) continue;
    for (const RankLog* const other : there) compare_clocks(*other, log, bounds[log.host]);
  }
  for (const auto& [host, of_host] : bounds) clocks.offsets[host] = of_host.offset();
  return clocks;
}

void RankLists::share(std::vector<CollectiveCall>& calls) {
  for (CollectiveCall& call : calls) {
    if (call.group_ranks) call.group_ranks = *lists_.insert(call.group_ranks).first;
  }
}

std::vector<CollectiveCall> last_collectives_of(const trace::TraceFile& trace, std::size_t most) {
  struct Group {
    std::string name;
    SharedRanks ranks;
  };
  std::map<std::uint32_t, Group> groups;
  for (const trace::CollectiveGroup& group : trace.collective_groups()) {
    GroupKey key = key_of(trace, group);
    Group& known = groups[group.fixed.index];
    known.name = std::move(key.name);
    if (!key.ranks.empty()) known.ranks = std::make_shared<const std::vector<int>>(std::move(key.ranks));
  }
  std::vector<CollectiveCall> calls;
  for (const trace::CollectiveEntry& entry : trace.collectives().last) {
    if (calls.size() == most) break;
    CollectiveCall& call = calls.emplace_back();
    call.name = collective_name(trace.operator_name(entry.facts.op));
    if (const auto group = groups.find(entry.facts.group); group != groups.end()) {
      call.group = group->second.name;
      call.group_ranks = group->second.ranks;
    }
    call.sequence = entry.facts.sequence;
    if (entry.facts.peer >= 0) call.peer = entry.facts.peer;
    call.bytes = std::max(entry.facts.bytes, entry.facts.other_bytes);
    call.dtype = trace.string(entry.facts.dtype);
    call.device = trace.device_name(entry.facts.device);
    call.state = name_of_state(entry.state);
    call.end_told = (entry.flags & trace::kEndNotTold) == 0;
    call.captured = (entry.flags & trace::kCaptured) != 0;
    call.where = user_frame_of(trace, entry.facts.site);
    call.step = entry.facts.step;
    call.entered_ns = entry.facts.entered_ns;
    call.wait_ns = entry.wait_ns;
    call.finished_ns = entry.finished_ns;
  }
  return calls;
}

}  // namespace devsan::report
