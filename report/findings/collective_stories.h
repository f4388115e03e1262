// What happened in collectives of a run: where each rank was, and what that makes of hangs, mismatches and long waits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/findings/collective_logs.h"
#include "report/findings/rank_troubles.h"
#include "report/model/finding.h"
#include "report/model/run.h"

namespace devsan::report {

// What a rank has of it; null where it has not entered it, or that is no longer known.
const EnteredCollective* entry_of(const RankLog& log, const CollectivePlace& place);
bool never_entered(const RankLog& log, const CollectivePlace& place);
// Where torch did not say who is in the group, those are that have been in it.
bool is_member(const GroupKey& group, const RankLog& log);

// Times of a damaged trace may be any numbers.
std::int64_t between(std::int64_t earlier, std::int64_t later);

// Where the main thread was; null where that is not known.
const Frame* place_in(const std::vector<ThreadStack>& threads);
std::optional<Frame> frame_at(const Frame* frame);

// A finding about the rank.
Finding finding_about(Kind kind, const RankLog& log, CollectiveStory story);
void stand_at(Finding& finding, const std::optional<Frame>& where);
// What a rank entered, and when. Its identity is of all that is set before.
void identify(Finding& finding, const EnteredCollective& entry);

// Of one run. To be made when all its processes are known, and how each ended; `troubles` are theirs (troubles_of()).
// All that it is made from outlives it, and stays as it is.
class Stories {
 public:
  Stories(const std::vector<Process>& processes, const CollectiveLogs& logs, const HostClocks& clocks,
          const std::map<int, RankTrouble>& troubles);

  bool of_several_ranks() const { return logs_.ranks().size() > 1; }
  bool in_trouble() const { return !troubles_.empty() || stuck_; }
  bool ended_by_others_alone() const { return first_ == nullptr; }
  const std::pair<const int, RankTrouble>* first() const { return first_; }

  CollectiveStory tell(const CollectivePlace& place) const;
  std::vector<CollectivePlace> hangs() const;
  std::vector<CollectivePlace> mismatches() const;
  Finding hang_finding(const CollectivePlace& place) const;
  Finding mismatch_finding(const CollectivePlace& place) const;
  std::vector<CollectivePlace> slow_waits() const;
  Finding slow_finding(const CollectivePlace& place) const;
  // What the others were in with a rank that failed; none where they were in nothing.
  std::optional<CollectivePlace> waiting_for(int rank) const;
  // The first that the rank waits in with members of which there is no log; none where there are all.
  std::optional<CollectivePlace> waiting_for_unseen(int rank) const;

 private:
  // The members of a group of which there are logs, by rank.
  const std::vector<const RankLog*>& members_of(const GroupKey& group) const { return members_.at(&group); }
  // The other members, as far as torch named them.
  const std::vector<int>& unseen_in(const GroupKey& group) const { return unseen_.at(&group); }
  bool has_member(const GroupKey& group, const RankLog& log) const;
  RankInCollective turn_of_unseen(int rank) const;
  RankInCollective turn_of(const RankLog& log, const CollectivePlace& place) const;
  void tell_absence(const RankLog& log, const CollectivePlace& place, RankInCollective& turn) const;
  std::optional<CollectivePlace> hang_in(const GroupKey& group) const;
  bool is_explained(const CollectivePlace& place) const;
  bool waits_elsewhere(const CollectivePlace& place) const;
  std::int64_t waited_ns(const CollectivePlace& place) const;
  void tell_slow(const CollectivePlace& place, CollectiveStory& story) const;

  const CollectiveLogs& logs_;
  const HostClocks& clocks_;
  const std::map<int, RankTrouble>& troubles_;
  const std::pair<const int, RankTrouble>* const first_;
  std::map<const GroupKey*, std::vector<const RankLog*>> members_;
  std::map<const GroupKey*, std::vector<int>> unseen_;
  std::map<int, const Process*> processes_by_rank_;
  std::set<int> ranks_with_traces_;
  bool stuck_ = false;  // a collective took longer than `--hang-after`
};

}  // namespace devsan::report
