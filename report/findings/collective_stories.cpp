#include "report/findings/collective_stories.h"

#include <algorithm>

#include "report/model/collective_names.h"
#include "report/model/merge.h"
#include "report/wording/collective_text.h"
#include "trace/run_info_keys.h"

namespace devsan::report {
namespace {

// Whether the rank is still, as far as is known, in the collective that took longer than `--hang-after`.
bool is_stuck(const RankLog& log) {
  return log.stuck_at && waits_in(entry_of(log, *log.stuck_at));
}

// Ascending. A damaged trace may name a rank twice, or what is none.
std::set<int> distinct_ranks(const GroupKey& group) {
  std::set<int> ranks(group.ranks.begin(), group.ranks.end());
  std::erase_if(ranks, [](int rank) { return rank < 0; });
  return ranks;
}

std::vector<const RankLog*> members_in(const CollectiveLogs& logs, const GroupKey& group) {
  std::vector<const RankLog*> members;
  if (group.ranks.empty()) {
    for (const auto& [rank, log] : logs.ranks()) {
      if (is_member(group, log)) members.push_back(&log);
    }
    return members;
  }
  for (const int rank : distinct_ranks(group)) {
    const auto log = logs.ranks().find(rank);
    if (log != logs.ranks().end()) members.push_back(&log->second);
  }
  return members;
}

std::vector<int> unseen_members(const CollectiveLogs& logs, const GroupKey& group) {
  std::vector<int> unseen;
  for (const int rank : distinct_ranks(group)) {
    if (!logs.ranks().contains(rank)) unseen.push_back(rank);
  }
  return unseen;
}

}  // namespace

const EnteredCollective* entry_of(const RankLog& log, const CollectivePlace& place) {
  const auto group = log.groups.find(place.group);
  if (group == log.groups.end()) return nullptr;
  const auto entry = group->second.by_number.find(place.number);
  return entry == group->second.by_number.end() ? nullptr : &entry->second;
}

bool never_entered(const RankLog& log, const CollectivePlace& place) {
  const auto group = log.groups.find(place.group);
  return group == log.groups.end() || group->second.entered < place.number;
}

bool is_member(const GroupKey& group, const RankLog& log) {
  if (group.ranks.empty()) return log.groups.contains(&group);
  return std::ranges::find(group.ranks, log.rank) != group.ranks.end();
}

Finding finding_about(Kind kind, const RankLog& log, CollectiveStory story) {
  Finding finding;
  finding.kind = kind;
  finding.severity = default_severity(kind);
  set_process(finding, log.pid, log.rank);
  finding.collective = std::move(story);
  return finding;
}

void stand_at(Finding& finding, const std::optional<Frame>& where) {
  finding.where = where;
  if (where) finding.stack = {*where};
}

void identify(Finding& finding, const EnteredCollective& entry) {
  finding.op = *entry.op;
  finding.step = entry.step;
  finding.time_ns = entry.entered_ns;
  finding.id = identity_of(finding);
}

Stories::Stories(const std::vector<Process>& processes, const CollectiveLogs& logs, const HostClocks& clocks,
                 const std::map<int, RankTrouble>& troubles)
    : logs_(logs), clocks_(clocks), troubles_(troubles), first_(first_trouble(troubles_)) {
  for (const GroupKey& group : logs_.groups()) {
    members_.emplace(&group, members_in(logs_, group));
    unseen_.emplace(&group, unseen_members(logs_, group));
  }
  for (const Process& process : processes) {
    if (process.rank) ranks_with_traces_.insert(*process.rank);
    const auto log = process.rank ? logs_.ranks().find(*process.rank) : logs_.ranks().end();
    if (log != logs_.ranks().end() && log->second.is_of(process)) processes_by_rank_.emplace(log->first, &process);
  }
  stuck_ = std::ranges::any_of(logs_.ranks(), [](const auto& one) { return is_stuck(one.second); });
}

bool Stories::has_member(const GroupKey& group, const RankLog& log) const {
  return std::ranges::binary_search(members_of(group), log.rank, {}, &RankLog::rank);
}

const Frame* place_in(const std::vector<ThreadStack>& threads) {
  if (threads.empty()) return nullptr;
  const auto own = std::ranges::find_if(threads.front().frames, [](const Frame& frame) { return !frame.torch; });
  return own == threads.front().frames.end() ? nullptr : &*own;
}

std::int64_t between(std::int64_t earlier, std::int64_t later) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier));
}

std::optional<Frame> frame_at(const Frame* frame) {
  return frame != nullptr ? std::optional(*frame) : std::nullopt;
}

RankInCollective Stories::turn_of(const RankLog& log, const CollectivePlace& place) const {
  RankInCollective turn;
  turn.rank = log.rank;
  if (stuck_) turn.threads = log.threads;
  const auto trouble = troubles_.find(log.rank);
  const EnteredCollective* const entry = entry_of(log, place);
  if (entry != nullptr || !never_entered(log, place)) {
    turn.state = entry == nullptr || entry->is_over() ? RankTurn::finished : RankTurn::waiting;
    turn.where = frame_at(entry != nullptr ? entry->at : nullptr);
    if (entry != nullptr) turn.entered = entered_text(*entry->op, entry->bytes, *entry->dtype, *entry->device);
    turn.what = turn.entered;
    if (turn.state == RankTurn::waiting && trouble != troubles_.end()) turn.what += ", then " + trouble->second.what;
    return turn;
  }
  tell_absence(log, place, turn);
  return turn;
}

RankInCollective Stories::turn_of_unseen(int rank) const {
  RankInCollective turn;
  turn.rank = rank;
  turn.state = RankTurn::no_trace;
  if (!ranks_with_traces_.contains(rank)) return turn;
  turn.state = RankTurn::never_entered;
  turn.what = "ran no operator";
  return turn;
}

// What a rank did instead.
void Stories::tell_absence(const RankLog& log, const CollectivePlace& place, RankInCollective& turn) const {
  const auto trouble = troubles_.find(log.rank);
  const bool failed = trouble != troubles_.end() && !trouble->second.from_outside;
  const auto known = processes_by_rank_.find(log.rank);
  const Process* const process = known != processes_by_rank_.end() ? known->second : nullptr;
  turn.state = RankTurn::never_entered;
  if (log.last && waits_in(&*log.last) && (!failed || trouble->second.from_collective)) {
    turn.state = RankTurn::entered_other;
    turn.where = frame_at(log.last->at);
    turn.what = "was in " + collective_name(*log.last->op);
    if (log.last->sequence != 0) turn.what += " " + std::to_string(log.last->sequence);
    if (log.last_group != place.group) turn.what += " of group " + log.last_group->name;
    if (failed) turn.what += ", then " + trouble->second.what;
  } else if (failed) {
    turn.state = RankTurn::gone;
    turn.where = trouble->second.where;
    turn.at_last_operator = trouble->second.last_operator.has_value();
    turn.what = trouble->second.what;
  } else if (trouble == troubles_.end() && process != nullptr && process->close != trace::CloseMark::open) {
    turn.state = RankTurn::gone;
    turn.what = "had ended";
  } else if (process != nullptr && !process->uncaught && process->info.contains(std::string(trace::kGroupsLeftKey))) {
    // It was ended before it had left.
    turn.state = RankTurn::gone;
    turn.what = "had run to its end";
  } else if (const Frame* const there = place_in(turn.threads)) {
    turn.where = *there;
    turn.what = "was here when the others had waited for too long";
  } else if (process != nullptr) {
    turn.where = last_place_of(*process);
    turn.what = last_operator_text(*process);
  }
}

CollectiveStory Stories::tell(const CollectivePlace& place) const {
  CollectiveStory story;
  story.group = place.group->name;
  story.group_ranks = place.group->ranks;
  story.sequence = place.number;
  const std::vector<const RankLog*>& members = members_of(*place.group);
  if (story.group_ranks.empty()) {
    for (const RankLog* const log : members) story.group_ranks.push_back(log->rank);
  }
  const EnteredCollective* told = nullptr;
  for (const RankLog* const log : members) {
    const EnteredCollective* const entry = entry_of(*log, place);
    if (told == nullptr || (waits_in(entry) && !waits_in(told))) told = entry != nullptr ? entry : told;
    story.per_rank.push_back(turn_of(*log, place));
  }
  for (const int rank : unseen_in(*place.group)) story.per_rank.push_back(turn_of_unseen(rank));
  std::ranges::sort(story.per_rank, {}, &RankInCollective::rank);
  if (told == nullptr) return story;
  story.name = collective_name(*told->op);
  story.dtype = *told->dtype;
  story.bytes = std::max(told->bytes, told->other_bytes);
  story.device = *told->device;
  return story;
}

}  // namespace devsan::report
