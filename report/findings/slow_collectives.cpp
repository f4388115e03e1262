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

}  // namespace

// Those that took longer than `--hang-after` on a rank, and then ended.
std::vector<CollectivePlace> Stories::slow_waits() const {
  std::set<CollectivePlace> places;
  for (const auto& [rank, log] : logs_.ranks()) {
    if (!log.stuck_at || !has_member(*log.stuck_at->group, log)) continue;
    const EnteredCollective* const entry = entry_of(log, *log.stuck_at);
    if (entry == nullptr || !entry->is_over() || entry->finished_ns < log.stuck_ns) continue;
    // Who was asked where it is may have been in one of its own, for a moment.
    if (between(entry->entered_ns, log.stuck_ns) >= kLeastPatience) places.insert(*log.stuck_at);
  }
  std::erase_if(places, [&](const CollectivePlace& place) {
    const auto still_waits = [&](const RankLog* log) { return waits_in(entry_of(*log, place)); };
    return std::ranges::any_of(members_of(*place.group), still_waits);
  });
  return {places.begin(), places.end()};
}

// Who had entered it when a rank's patience ended waited; who came later was waited for.
void Stories::tell_slow(const CollectivePlace& place, CollectiveStory& story) const {
  std::int64_t noticed = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = noticed;
  for (const RankLog* const log : members_of(*place.group)) {
    const EnteredCollective* const entry = entry_of(*log, place);
    if (entry == nullptr) continue;
    const std::int64_t entered = clocks_.common(entry->entered_ns, log->host);
    first = std::min(first, entered);
    if (log->stuck_at == place) noticed = std::min(noticed, clocks_.common(log->stuck_ns, log->host));
  }
  for (RankInCollective& turn : story.per_rank) {
    const auto known = logs_.ranks().find(turn.rank);
    if (known == logs_.ranks().end()) continue;
    const RankLog& log = known->second;
    turn.threads = log.threads;
    const EnteredCollective* const entry = entry_of(log, place);
    if (entry == nullptr) continue;
    const std::int64_t entered = clocks_.common(entry->entered_ns, log.host);
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
