#include "report/findings/rank_troubles.h"

#include <algorithm>
#include <array>
#include <csignal>
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

std::string said(const UncaughtException& uncaught) {
  std::string text = "raised " + uncaught.type;
  const std::string first = uncaught.message.substr(0, uncaught.message.find('\n'));
  if (!first.empty()) text += ": " + cut_right(first, kMessageColumns);
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
  return log.last && !log.last->is_over() && (log.last->flags & trace::kEndNotTold) == 0;
}

// For a process whose end is not recorded.
std::int64_t last_sign_of_life(const RankLog& log) {
  return log.last ? std::max(log.last->entered_ns, log.last->finished_ns) : 0;
}

std::optional<RankTrouble> trouble_of(const Process& process, const RankLog& log) {
  RankTrouble trouble;
  trouble.step = process.steps > 0 ? process.steps - 1 : 0;
  if (log.uncaught) {
    trouble.raised = true;
    trouble.time_ns = log.uncaught->time_ns;
    trouble.step = log.uncaught->step;
    trouble.where = log.uncaught->where;
    trouble.what = said(*log.uncaught);
    trouble.from_collective = last_collective_failed(log) || is_of_c10d(*log.uncaught);
    trouble.lost_peer = trouble.from_collective && says_that_peer_is_gone(log.uncaught->message);
    trouble.from_outside = log.uncaught->type == "KeyboardInterrupt";
    return trouble;
  }
  trouble.where = last_place_of(process);
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

// Where all failures say that another rank had gone before, and of one rank alone nobody knows how it ended, they speak
// of that one.
void accuse_the_unknown(std::map<int, RankTrouble>& troubles) {
  RankTrouble* unknown = nullptr;
  bool lost = false;
  for (auto& [rank, trouble] : troubles) {
    if (trouble.from_outside && trouble.end_unknown) {
      if (unknown != nullptr) return;
      unknown = &trouble;
    } else if (!trouble.from_outside) {
      if (!trouble.lost_peer) return;
      lost = true;
    }
  }
  if (unknown == nullptr || !lost) return;
  unknown->from_outside = false;
  unknown->from_collective = true;
}

}  // namespace

std::map<int, RankTrouble> troubles_of(const std::vector<Process>& processes, const CollectiveLogs& logs) {
  std::map<int, RankTrouble> troubles;
  const std::map<std::string, std::int64_t> offsets = logs.clock_offsets();
  for (const Process& process : processes) {
    const auto log = process.rank ? logs.ranks().find(*process.rank) : logs.ranks().end();
    if (log == logs.ranks().end() || log->second.pid != process.pid || log->second.host != process.host) continue;
    std::optional<RankTrouble> trouble = trouble_of(process, log->second);
    if (!trouble) continue;
    const auto offset = offsets.find(process.host);
    if (trouble->time_ns != 0 && offset != offsets.end()) trouble->time_ns += offset->second;
    troubles.emplace(log->first, std::move(*trouble));
  }
  excuse_the_killed(troubles);
  accuse_the_unknown(troubles);
  return troubles;
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
