// Waits that were too long, and ended by themselves: a rank came late, or the collective itself took long.
#include <algorithm>
#include <limits>
#include <set>

#include "report/findings/collective_stories.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

// The least that `--hang-after` may be.
constexpr std::int64_t kLeastPatience = 1'000'000'000;

// Times of a damaged trace may be any numbers.
std::int64_t between(std::int64_t earlier, std::int64_t later) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier));
}

std::int64_t after(std::int64_t time, std::int64_t more) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time) + static_cast<std::uint64_t>(more));
}

}  // namespace

// Those that took longer than `--hang-after` on a rank, and then ended.
std::vector<CollectivePlace> Stories::slow_waits() const {
  std::set<CollectivePlace> places;
  for (const auto& [rank, log] : logs_.ranks()) {
    if (!log.stuck_at || !is_member(*log.stuck_at->group, log)) continue;
    const EnteredCollective* const entry = entry_of(log, *log.stuck_at);
    if (entry == nullptr || !entry->is_over() || entry->finished_ns < log.stuck_ns) continue;
    const std::vector<const RankLog*> members = members_of(*log.stuck_at->group, logs_);
    if (std::ranges::any_of(members, [&](const RankLog* one) { return waits_in(entry_of(*one, *log.stuck_at)); })) {
      continue;
    }
    // Who was asked where it is may have been in one of its own, for a moment.
    if (between(entry->entered_ns, log.stuck_ns) >= kLeastPatience) places.insert(*log.stuck_at);
  }
  return {places.begin(), places.end()};
}

// By the clock of the lowest rank's host.
std::int64_t Stories::entered_ns(const RankLog& log, const EnteredCollective& entry) const {
  const auto offset = offsets_.find(log.host);
  return after(entry.entered_ns, offset == offsets_.end() ? 0 : offset->second);
}

// Who had entered it when a rank's patience ended waited; who came later was waited for.
void Stories::tell_slow(const CollectivePlace& place, CollectiveStory& story) const {
  std::int64_t noticed = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = noticed;
  for (const RankLog* const log : members_of(*place.group, logs_)) {
    const EnteredCollective* const entry = entry_of(*log, place);
    if (entry == nullptr) continue;
    const std::int64_t entered = entered_ns(*log, *entry);
    first = std::min(first, entered);
    if (log->stuck_at == place) noticed = std::min(noticed, after(log->stuck_ns, between(entry->entered_ns, entered)));
  }
  for (RankInCollective& turn : story.per_rank) {
    const RankLog& log = logs_.ranks().at(turn.rank);
    turn.threads = log.threads;
    const EnteredCollective* const entry = entry_of(log, place);
    if (entry == nullptr) continue;
    const std::int64_t entered = entered_ns(log, *entry);
    if (entered < noticed) {
      turn.state = RankTurn::waiting;
      story.waited_ns = std::max(story.waited_ns, between(entry->entered_ns, entry->finished_ns));
      continue;
    }
    turn.state = RankTurn::late;
    turn.what = "entered it " + seconds_text(between(first, entered)) + " after the first";
    if (const Frame* const there = place_in(log.threads)) {
      turn.where = *there;
      turn.what += ", and was here meanwhile";
    }
  }
}

Finding Stories::slow_finding(const CollectivePlace& place) const {
  CollectiveStory story = tell(place);
  tell_slow(place, story);
  std::vector<int> late;
  std::vector<int> waiting;
  for (const RankInCollective& turn : story.per_rank) {
    if (turn.state == RankTurn::late) late.push_back(turn.rank);
    if (turn.state == RankTurn::waiting) waiting.push_back(turn.rank);
  }
  const int about = late.empty() ? waiting.front() : late.front();
  const RankLog& log = logs_.ranks().at(about);
  Finding finding = finding_about(Kind::collective_slow, log, std::move(story));
  finding.ranks = late.empty() ? std::move(waiting) : std::move(late);
  stand_at(finding, std::ranges::find(finding.collective->per_rank, about, &RankInCollective::rank)->where);
  identify(finding, *entry_of(log, place));
  return finding;
}

}  // namespace devsan::report
