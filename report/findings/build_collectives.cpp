#include "report/findings/build_collectives.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "report/findings/collective_stories.h"
#include "report/model/collective_names.h"
#include "report/model/operands.h"

namespace devsan::report {
namespace {

// A run that somebody ended is no hang because one rank was a little behind.
constexpr std::int64_t kLongWait = 5'000'000'000;

// What all of these have to agree in. Parts of all_to_all and of gathers may differ.
bool sizes_agree_in(const std::string& op) {
  static const std::set<std::string_view> kAgree = {"c10d::allreduce_",
                                                    "c10d::allreduce_coalesced_",
                                                    "c10d::broadcast_",
                                                    "c10d::reduce_",
                                                    "c10d::_allgather_base_",
                                                    "c10d::allgather_into_tensor_coalesced_",
                                                    "c10d::_reduce_scatter_base_",
                                                    "c10d::reduce_scatter_tensor_coalesced_"};
  return kAgree.contains(op);
}

using Signature = std::tuple<std::string_view, std::string_view, std::string_view, std::uint64_t, std::uint64_t>;

Signature signature_of(const EnteredCollective& entry) {
  if (*entry.op == "c10d::barrier" || *entry.op == "c10d::monitored_barrier_") return {"c10d::barrier", "", "", 0, 0};
  const bool sizes = sizes_agree_in(*entry.op);
  return {*entry.op, *entry.dtype, kind_of_device(*entry.device), sizes ? entry.bytes : 0,
          sizes ? entry.other_bytes : 0};
}

// The first collective of the group, behind those of the numbers up to `entered_by_all`, that the rank waits in.
std::map<std::uint64_t, EnteredCollective>::const_iterator first_open(const GroupLog& log,
                                                                      std::uint64_t entered_by_all = 0) {
  return std::find_if(log.by_number.upper_bound(entered_by_all), log.by_number.end(),
                      [](const auto& one) { return waits_in(&one.second); });
}

// Of a rank that caught what an operator raised, and left for it, as torch.multiprocessing's workers do.
void stand_at_refusal(FirstFailure& failure, const Finding& refused) {
  failure.what = "was refused " + refused.op + ", then " + failure.what;
  failure.where = refused.where;
  failure.last_operator.reset();
}

// The hang that a rank failed in: it waited for others in vain.
const Finding* hang_of(int rank, const RankTrouble& trouble, const std::vector<Finding>& findings) {
  if (!trouble.from_collective) return nullptr;
  const auto waits = [rank](const RankInCollective& turn) {
    return turn.rank == rank && turn.state == RankTurn::waiting;
  };
  const auto hang = std::ranges::find_if(findings, [&](const Finding& finding) {
    return finding.kind == Kind::collective_hang && std::ranges::any_of(finding.collective->per_rank, waits);
  });
  return hang == findings.end() ? nullptr : &*hang;
}

// Of a rank that failed in a collective in which nothing else is wrong: it waited for whoever is not known to be in it.
// No finding is about those.
bool waited_for_unseen(FirstFailure& failure, const Stories& stories, const std::vector<Finding>& findings) {
  const auto explains = [](const Finding& one) { return one.collective && one.severity == Severity::error; };
  if (std::ranges::any_of(findings, explains)) return false;
  const std::optional<CollectivePlace> place = stories.waiting_for_unseen(*failure.rank);
  if (!place) return false;
  failure.waiting = stories.tell(*place);
  failure.missing = ranks_in(*failure.waiting, RankTurn::never_entered);
  if (failure.missing.empty()) failure.missing = ranks_in(*failure.waiting, RankTurn::no_trace);
  return true;
}

}  // namespace

// The first collective of the group that a rank waits in and another has not entered.
std::optional<CollectivePlace> Stories::hang_in(const GroupKey& group) const {
  std::vector<const GroupLog*> logs;
  std::uint64_t all_entered = std::numeric_limits<std::uint64_t>::max();
  for (const RankLog* const log : members_of(group)) {
    const auto of_group = log->groups.find(&group);
    const bool has_any = of_group != log->groups.end();
    all_entered = std::min(all_entered, has_any ? of_group->second.entered : 0);
    if (has_any) logs.push_back(&of_group->second);
  }
  std::optional<CollectivePlace> hang;
  for (const GroupLog* const log : logs) {
    const auto open = first_open(*log, all_entered);
    if (open != log->by_number.end() && (!hang || open->first < hang->number)) hang = {&group, open->first};
  }
  return hang;
}

// A rank that failed on its own did not come to it.
bool Stories::is_explained(const CollectivePlace& place) const {
  if (first_ == nullptr || first_->second.from_collective) return false;
  const auto log = logs_.ranks().find(first_->first);
  return has_member(*place.group, log->second) && never_entered(log->second, place);
}

// The ranks that did not come to it wait themselves, for others.
bool Stories::waits_elsewhere(const CollectivePlace& place) const {
  for (const RankLog* const log : members_of(*place.group)) {
    if (!never_entered(*log, place)) continue;
    if (!log->last || !waits_in(&*log->last)) return false;
  }
  return true;
}

std::int64_t Stories::waited_ns(const CollectivePlace& place) const {
  std::int64_t longest = 0;
  for (const RankLog* const log : members_of(*place.group)) {
    const EnteredCollective* const entry = entry_of(*log, place);
    const auto trouble = troubles_.find(log->rank);
    if (waits_in(entry) && trouble != troubles_.end()) {
      const std::int64_t entered = clocks_.common(entry->entered_ns, log->host);
      longest = std::max(longest, between(entered, trouble->second.time_ns));
    }
  }
  return longest;
}

std::vector<CollectivePlace> Stories::hangs() const {
  std::vector<CollectivePlace> all;
  bool explained = false;
  for (const GroupKey& group : logs_.groups()) {
    const std::optional<CollectivePlace> hang = hang_in(group);
    if (!hang) continue;
    if (is_explained(*hang)) {
      explained = true;
      continue;
    }
    if (!ended_by_others_alone() || stuck_ || waited_ns(*hang) >= kLongWait) all.push_back(*hang);
  }
  // Where some ranks are in nothing, or one of them failed, they are why; others wait for those that wait for them.
  const bool has_root =
      explained || std::ranges::any_of(all, [&](const CollectivePlace& hang) { return !waits_elsewhere(hang); });
  if (has_root) std::erase_if(all, [&](const CollectivePlace& hang) { return waits_elsewhere(hang); });
  return all;
}

std::vector<CollectivePlace> Stories::mismatches() const {
  std::vector<CollectivePlace> all;
  for (const GroupKey& group : logs_.groups()) {
    std::map<std::uint64_t, std::pair<std::set<Signature>, bool>> by_number;
    for (const RankLog* const log : members_of(group)) {
      const auto of_group = log->groups.find(&group);
      if (of_group == log->groups.end()) continue;
      for (const auto& [number, entry] : of_group->second.by_number) {
        auto& [signatures, open] = by_number[number];
        signatures.insert(signature_of(entry));
        open = open || waits_in(&entry);
      }
    }
    const auto wrong = std::ranges::find_if(
        by_number, [](const auto& one) { return one.second.first.size() > 1 && one.second.second; });
    if (wrong != by_number.end()) all.push_back({&group, wrong->first});
  }
  return all;
}

Finding Stories::hang_finding(const CollectivePlace& place) const {
  CollectiveStory story = tell(place);
  const RankLog* missing = nullptr;
  std::vector<int> ranks;
  const EnteredCollective* waiting = nullptr;
  for (const RankLog* const log : members_of(*place.group)) {
    if (never_entered(*log, place)) {
      if (missing == nullptr) missing = log;
      ranks.push_back(log->rank);
    } else if (const EnteredCollective* entry = entry_of(*log, place); waits_in(entry)) {
      if (waiting == nullptr || entry->entered_ns < waiting->entered_ns) waiting = entry;
    }
  }
  Finding finding = finding_about(Kind::collective_hang, *missing, std::move(story));
  finding.ranks = std::move(ranks);
  if (ended_by_others_alone() && !stuck_) finding.severity = Severity::warning;
  const auto turn = std::ranges::find(finding.collective->per_rank, missing->rank, &RankInCollective::rank);
  stand_at(finding, turn->where ? turn->where : frame_at(waiting->at));
  identify(finding, *waiting);
  return finding;
}

Finding Stories::mismatch_finding(const CollectivePlace& place) const {
  std::map<Signature, std::vector<const RankLog*>> camps;
  for (const RankLog* const log : members_of(*place.group)) {
    if (const EnteredCollective* entry = entry_of(*log, place)) camps[signature_of(*entry)].push_back(log);
  }
  // Of two camps of one size, that of the lowest rank counts as right.
  const auto right = std::ranges::max_element(
      camps, {}, [](const auto& camp) { return std::pair(camp.second.size(), -camp.second.front()->rank); });
  const RankLog* odd = nullptr;
  std::vector<int> ranks;
  std::map<int, int> camp_of_rank;
  int number = 0;
  for (const auto& [signature, camp] : camps) {
    if (signature == right->first) continue;
    ++number;
    for (const RankLog* const log : camp) {
      ranks.push_back(log->rank);
      camp_of_rank[log->rank] = number;
      if (odd == nullptr || log->rank < odd->rank) odd = log;
    }
  }
  std::ranges::sort(ranks);
  CollectiveStory story = tell(place);
  const EnteredCollective& usual = *entry_of(*right->second.front(), place);
  story.name = collective_name(*usual.op);
  story.dtype = *usual.dtype;
  story.bytes = std::max(usual.bytes, usual.other_bytes);
  story.device = *usual.device;
  for (RankInCollective& turn : story.per_rank) {
    const auto camp = camp_of_rank.find(turn.rank);
    if (camp == camp_of_rank.end()) continue;
    turn.state = RankTurn::entered_other;
    turn.camp = camp->second;
  }
  Finding finding = finding_about(Kind::collective_mismatch, *odd, std::move(story));
  finding.ranks = std::move(ranks);
  const EnteredCollective& entry = *entry_of(*odd, place);
  stand_at(finding, frame_at(entry.at));
  identify(finding, entry);
  return finding;
}

std::optional<CollectivePlace> Stories::waiting_for(int rank) const {
  const RankLog& waited_for = logs_.ranks().at(rank);
  std::map<CollectivePlace, std::size_t> waiting;
  for (const auto& [other, log] : logs_.ranks()) {
    if (other == rank) continue;
    for (const auto& [group, of_group] : log.groups) {
      if (!has_member(*group, waited_for)) continue;
      const auto open = first_open(of_group);
      if (open != of_group.by_number.end()) ++waiting[{group, open->first}];
    }
  }
  const auto most = std::ranges::max_element(waiting, {}, [](const auto& one) { return one.second; });
  if (most == waiting.end()) return std::nullopt;
  return most->first;
}

std::optional<CollectivePlace> Stories::waiting_for_unseen(int rank) const {
  std::optional<CollectivePlace> place;
  std::int64_t since_ns = 0;
  for (const auto& [group, of_group] : logs_.ranks().at(rank).groups) {
    if (unseen_in(*group).empty()) continue;
    const auto open = first_open(of_group);
    if (open == of_group.by_number.end() || (place && open->second.entered_ns >= since_ns)) continue;
    place = {group, open->first};
    since_ns = open->second.entered_ns;
  }
  return place;
}

std::vector<Finding> build_collectives(const Stories& stories) {
  std::vector<Finding> findings;
  if (!stories.of_several_ranks()) return findings;
  for (const CollectivePlace& place : stories.slow_waits()) findings.push_back(stories.slow_finding(place));
  if (!stories.in_trouble()) return findings;
  const std::size_t slow = findings.size();
  for (const CollectivePlace& place : stories.mismatches()) findings.push_back(stories.mismatch_finding(place));
  // Ranks that are in different collectives wait for each other, and for whoever comes later.
  if (findings.size() > slow) return findings;
  for (const CollectivePlace& place : stories.hangs()) findings.push_back(stories.hang_finding(place));
  return findings;
}

std::optional<FirstFailure> first_failure_of(const Stories& stories, const std::vector<Finding>& findings) {
  if (!stories.of_several_ranks()) return std::nullopt;
  const auto* const first = stories.first();
  if (first == nullptr) return std::nullopt;
  const auto& [rank, trouble] = *first;
  FirstFailure failure = failure_of(*first);
  if (const Finding* const hang = hang_of(rank, trouble, findings)) {
    failure.waiting = hang->collective;
    failure.missing = hang->ranks;
    failure.finding = hang->id;
    return failure;
  }
  if (trouble.from_collective && waited_for_unseen(failure, stories, findings)) return failure;
  if (const auto place = stories.waiting_for(rank)) failure.waiting = stories.tell(*place);
  const auto about = [&](const Finding& finding) {
    if (finding.severity != Severity::error || finding.handled) return false;
    if (finding.collective) return trouble.from_collective;
    return std::ranges::find(finding.ranks, rank) != finding.ranks.end();
  };
  const auto found = std::ranges::find_if(findings, about);
  if (found == findings.end()) return failure;
  failure.finding = found->id;
  if (trouble.left && found->raised && found->step == trouble.step) stand_at_refusal(failure, *found);
  return failure;
}

}  // namespace devsan::report
