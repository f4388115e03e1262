#include "report/findings/rank_troubles.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <set>
#include <string_view>
#include <tuple>

#include "report/findings/build_endings.h"
#include "report/text/text_layout.h"
#include "report/wording/collective_text.h"

namespace devsan::report {
namespace {

constexpr std::size_t kMessageColumns = 200;
// Launchers ask first, and kill what has not ended after so long: torchrun waits for 30 s.
constexpr std::int64_t kPatience = 10'000'000'000;

bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

// What a shell makes of a signal, and handlers that end the process say by custom.
bool says_asked_to_end(int status) {
  constexpr int kSignalled = 128;
  return status > kSignalled && asks_to_end(status - kSignalled);
}

std::string said(const UncaughtException& uncaught) {
  std::string text = "raised " + uncaught.type;
  const std::string first = uncaught.message.substr(0, uncaught.message.find('\n'));
  if (!first.empty()) text += (uncaught.message_is_arguments ? "" : ": ") + cut_right(first, kMessageColumns);
  return text;
}

// c10d's own exceptions are about another rank, or the way there.
bool is_of_c10d(const UncaughtException& uncaught) {
  return uncaught.type.starts_with("Dist") && uncaught.type.ends_with("Error");
}

// What Gloo, NCCL, UCX and c10d's store say where the other end of a connection is no longer there.
bool says_that_peer_is_gone(std::string_view message) {
  constexpr std::array<std::string_view, 7> kTexts = {
      "Connection reset by",   "Connection closed by", "Connection was likely closed", "Broken pipe",
      "remote process exited", "Socket closed",        "remote process exiting"};
  return std::ranges::any_of(kTexts, [&](std::string_view text) { return message.find(text) != message.npos; });
}

// Whether the rank came to grief in a collective: its last one failed, or nobody has seen its end.
bool last_collective_failed(const RankLog& log) {
  return log.last && log.last->state == trace::CollectiveState::failed;
}

bool waits_in_last_collective(const RankLog& log) {
  return log.last && waits_in(&*log.last);
}

// For a process whose end is not recorded.
std::int64_t last_sign_of_life(const RankLog& log) {
  return log.last ? std::max(log.last->entered_ns, log.last->finished_ns) : 0;
}

// `known` is null of a former attempt: what it entered is not known any more.
std::optional<RankTrouble> trouble_of(const Process& process, const RankLog* known) {
  static const RankLog kNone;
  const RankLog& log = known != nullptr ? *known : kNone;
  RankTrouble trouble;
  trouble.step = process.steps > 0 ? process.steps - 1 : 0;
  if (process.uncaught) {
    trouble.raised = true;
    trouble.time_ns = process.uncaught->time_ns;
    trouble.step = process.uncaught->step;
    trouble.where = process.uncaught->where;
    trouble.what = said(*process.uncaught);
    const bool lost = says_that_peer_is_gone(process.uncaught->message);
    trouble.from_collective =
        last_collective_failed(log) || is_of_c10d(*process.uncaught) || (known == nullptr && lost);
    trouble.lost_peer = trouble.from_collective && lost;
    trouble.from_outside = process.uncaught->type == "KeyboardInterrupt";
    return trouble;
  }
  trouble.last_operator = last_place_of(process);
  const std::optional<Frame> own = last_own_place_of(process);
  trouble.where = own ? own : trouble.last_operator;
  const bool open = process.close == trace::CloseMark::open;
  if (process.ending && process.ending->signal != 0 && open) {
    trouble.time_ns = process.ended_ns != 0 ? process.ended_ns : last_sign_of_life(log);
    trouble.what = "was ended by " + signal_name(process.ending->signal);
    trouble.from_outside = asks_to_end(process.ending->signal);
    trouble.from_collective = process.ending->signal == SIGABRT && waits_in_last_collective(log);
    return trouble;
  }
  if (process.ending && process.ending->status.value_or(0) != 0) {
    trouble.time_ns = process.ended_ns;
    trouble.left = true;
    trouble.had_error = process.first_error_ns != 0;
    trouble.from_outside = says_asked_to_end(*process.ending->status);
    trouble.what = "left with status " + std::to_string(*process.ending->status);
    trouble.from_collective = last_collective_failed(log);
    return trouble;
  }
  if (!process.ending && open && process.ended.value_or(false)) {
    trouble.time_ns = last_sign_of_life(log);
    trouble.what = "was killed or crashed";
    trouble.end_unknown = true;
    trouble.from_outside = waits_in_last_collective(log);
    return trouble;
  }
  return std::nullopt;
}

// Who is killed long after another has failed is killed for that.
void excuse_the_killed(std::map<int, RankTrouble>& troubles) {
  std::int64_t earliest = 0;
  for (const auto& [rank, trouble] : troubles) {
    if (trouble.raised && (earliest == 0 || trouble.time_ns < earliest)) earliest = trouble.time_ns;
  }
  for (auto& [rank, trouble] : troubles) {
    if (!trouble.raised && earliest != 0 && trouble.time_ns > earliest + kPatience) trouble.from_outside = true;
  }
}

// Launchers ask the others to end once a rank is gone, and a handler of SIGTERM may leave with any status. Where that
// rank had waited in vain, those that leave afterwards, without an error of their own, are what it waited for.
void excuse_the_asked(std::map<int, RankTrouble>& troubles) {
  std::int64_t earliest = 0;
  for (const auto& [rank, trouble] : troubles) {
    if (!trouble.raised || !trouble.from_collective || trouble.lost_peer || trouble.gone_ns == 0) continue;
    if (earliest == 0 || trouble.gone_ns < earliest) earliest = trouble.gone_ns;
  }
  if (earliest == 0) return;
  for (auto& [rank, trouble] : troubles) {
    if (trouble.left && !trouble.had_error && trouble.time_ns > earliest) trouble.from_outside = true;
  }
}

// Several ranks that ended in no collective, and nobody was told how: one that crashed would have let the others wait,
// so somebody ended them together.
void excuse_those_ended_together(const std::vector<RankTrouble*>& unknown) {
  const auto waits = [](const RankTrouble* trouble) { return trouble->from_outside; };
  if (unknown.size() - static_cast<std::size_t>(std::ranges::count_if(unknown, waits)) < 2) return;
  for (RankTrouble* const trouble : unknown) trouble->from_outside = true;
}

// Of ranks whose end nobody knows. Somebody ended them, where a failure of another one is known: launchers do so at
// once. If all failures that are known say only that another rank had gone before, they speak of such a rank.
void judge_the_unknown(std::map<int, RankTrouble>& troubles) {
  std::map<int, RankTrouble> known;
  std::vector<RankTrouble*> unknown;
  for (auto& [rank, trouble] : troubles) {
    if (trouble.end_unknown) {
      unknown.push_back(&trouble);
    } else {
      known.emplace(rank, trouble);
    }
  }
  const auto* const first = first_trouble(known);
  if (first == nullptr) return excuse_those_ended_together(unknown);
  if (unknown.empty()) return;
  if (first->second.lost_peer) {
    // Of several, nobody can say which.
    if (unknown.size() > 1 || !unknown.front()->from_outside) return;
    unknown.front()->from_outside = false;
    unknown.front()->from_collective = true;
    return;
  }
  for (RankTrouble* const trouble : unknown) {
    // Others may wait long for one that crashed, until they fail for that.
    if (first->second.from_collective && !trouble->from_outside) continue;
    trouble->from_outside = true;
    trouble->what = "was ended";
  }
}

// The worker of each rank among these processes: children of it have its rank, too, and came later.
std::map<int, const Process*> workers_of_attempt(const std::vector<Process>& processes, std::optional<int> attempt) {
  std::map<int, const Process*> workers;
  for (const Process& process : processes) {
    if (!process.rank || process.attempt != attempt) continue;
    const auto [known, is_new] = workers.emplace(*process.rank, &process);
    if (!is_new && process.start_ns < known->second->start_ns) known->second = &process;
  }
  return workers;
}

const RankLog* log_of(const Process& process, const CollectiveLogs& logs) {
  const auto log = process.rank ? logs.ranks().find(*process.rank) : logs.ranks().end();
  return log != logs.ranks().end() && log->second.is_of(process) ? &log->second : nullptr;
}

std::optional<RankTrouble> trouble_in(const Process& process, const RankLog* log, const HostClocks& clocks) {
  std::optional<RankTrouble> trouble = trouble_of(process, log);
  if (!trouble) return trouble;
  trouble->time_ns = clocks.common(trouble->time_ns, process.host);
  trouble->gone_ns = clocks.common(process.ended_ns, process.host);
  return trouble;
}

void judge(std::map<int, RankTrouble>& troubles) {
  excuse_the_killed(troubles);
  excuse_the_asked(troubles);
  judge_the_unknown(troubles);
}

// Whether a process of an attempt, in which `first` failed first, was ended for that; `trouble` is its own if it is the
// worker of its rank.
bool was_ended_for(const std::pair<const int, RankTrouble>& first, const Process& process, const RankTrouble* trouble) {
  if (process.close != trace::CloseMark::open || !process.ended.value_or(true)) return false;
  // Then it may have ended before.
  if (first.second.lost_peer) return false;
  if (!process.ending) return trouble == nullptr || trouble->from_outside || trouble->raised;
  if (asks_to_end(process.ending->signal)) return true;
  const bool killed = process.ending->signal == SIGKILL && !process.ending->named_by_kernel;
  return killed && trouble != nullptr && (trouble->from_outside || trouble->raised);
}

// Returns who failed first in this attempt.
std::optional<EarlierFailure> tell_ended_after(std::vector<Process>& processes, const CollectiveLogs& logs,
                                               const HostClocks& clocks, std::optional<int> attempt) {
  const std::map<int, const Process*> workers = workers_of_attempt(processes, attempt);
  std::map<int, RankTrouble> troubles;
  for (const auto& [rank, worker] : workers) {
    if (auto trouble = trouble_in(*worker, log_of(*worker, logs), clocks)) troubles.emplace(rank, std::move(*trouble));
  }
  judge(troubles);
  const auto* const first = first_trouble(troubles);
  if (first == nullptr) return std::nullopt;
  const Process* const failed = workers.at(first->first);
  for (Process& process : processes) {
    if (!process.rank || process.attempt != attempt || &process == failed) continue;
    const bool before = process.ended_ns != 0 && process.host == failed->host &&
                        clocks.common(process.ended_ns, process.host) < first->second.time_ns;
    const auto trouble = troubles.find(*process.rank);
    const bool own = trouble != troubles.end() && workers.at(*process.rank) == &process;
    if (!before && was_ended_for(*first, process, own ? &trouble->second : nullptr)) process.ended_after = first->first;
  }
  return EarlierFailure{attempt.value_or(0), failure_of(*first)};
}

}  // namespace

std::vector<EarlierFailure> tell_ended_after(std::vector<Process>& processes, const CollectiveLogs& logs,
                                             const HostClocks& clocks) {
  std::set<std::optional<int>> attempts;
  for (const Process& process : processes) {
    if (process.rank) attempts.insert(process.attempt);
  }
  std::vector<EarlierFailure> earlier;
  for (const std::optional<int>& attempt : attempts) {
    auto first = tell_ended_after(processes, logs, clocks, attempt);
    if (first && attempt && attempt != *attempts.rbegin()) earlier.push_back(std::move(*first));
  }
  return earlier;
}

std::map<int, RankTrouble> troubles_of(const std::vector<Process>& processes, const CollectiveLogs& logs,
                                       const HostClocks& clocks) {
  std::map<int, RankTrouble> troubles;
  for (const Process& process : processes) {
    const RankLog* const log = log_of(process, logs);
    if (log == nullptr) continue;
    if (auto trouble = trouble_in(process, log, clocks)) troubles.emplace(log->rank, std::move(*trouble));
  }
  judge(troubles);
  return troubles;
}

FirstFailure failure_of(const std::pair<const int, RankTrouble>& trouble) {
  const auto& [rank, told] = trouble;
  FirstFailure failure;
  failure.rank = rank;
  failure.step = told.step;
  failure.time_ns = told.time_ns;
  failure.where = told.where;
  failure.last_operator = told.last_operator;
  failure.what = told.what;
  return failure;
}

const std::pair<const int, RankTrouble>* first_trouble(const std::map<int, RankTrouble>& troubles) {
  const auto order = [](const RankTrouble& trouble) {
    return std::tuple(trouble.from_outside, trouble.from_collective, trouble.lost_peer, trouble.time_ns);
  };
  const std::pair<const int, RankTrouble>* first = nullptr;
  for (const auto& one : troubles) {
    if (first == nullptr || order(one.second) < order(first->second)) first = &one;
  }
  return first != nullptr && !first->second.from_outside ? first : nullptr;
}

}  // namespace devsan::report
