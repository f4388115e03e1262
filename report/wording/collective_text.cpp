#include "report/wording/collective_text.h"

#include <algorithm>
#include <tuple>

#include "report/model/collective_names.h"
#include "report/model/frames.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kShownFrames = 8;   // of a stack
constexpr std::size_t kShownPlaces = 4;   // that ranks entered a collective from
constexpr std::size_t kShownOthers = 4;   // that ranks entered instead
constexpr std::size_t kToldAttempts = 5;  // that failed before the newest one

const Thread* newest_thread(const Process& process) {
  const Thread* newest = nullptr;
  const auto newness = [](const Thread& one) { return std::tuple(one.last.front().step, one.operators); };
  for (const Thread& thread : process.threads) {
    if (!thread.last.empty() && (newest == nullptr || newness(thread) > newness(*newest))) newest = &thread;
  }
  return newest;
}

std::string name_and_number(const CollectiveStory& story) {
  return story.name + " " + std::to_string(story.sequence);
}

std::string_view word_of(RankTurn state) {
  switch (state) {
    case RankTurn::waiting:
      return "waited";
    case RankTurn::never_entered:
      return "never entered it";
    case RankTurn::finished:
      return "was done with it";
    case RankTurn::entered_other:
      return "entered another";
    case RankTurn::late:
      return "came late";
    case RankTurn::gone:
      return "was gone";
    case RankTurn::no_trace:
      return "left no trace here";
  }
  return "waited";
}

// Ranks that did the same.
struct Camp {
  const RankInCollective* first;
  std::vector<int> ranks;
};

std::vector<Camp> camps_of(const CollectiveStory& story) {
  std::vector<Camp> camps;
  for (const RankInCollective& turn : story.per_rank) {
    const auto same = std::ranges::find_if(camps, [&](const Camp& camp) {
      const RankInCollective& first = *camp.first;
      const bool there = first.where && turn.where ? same_line(*first.where, *turn.where) : !first.where && !turn.where;
      return there && first.state == turn.state && first.what == turn.what;
    });
    if (same != camps.end()) {
      same->ranks.push_back(turn.rank);
    } else {
      camps.push_back({&turn, {turn.rank}});
    }
  }
  return camps;
}

void append_stack(Lines& lines, const std::vector<Frame>& stack, const Style& style) {
  for (std::size_t i = 0; i < std::min(stack.size(), kShownFrames); ++i) {
    append_wrapped(lines, short_place(stack[i]) + " in " + stack[i].function, 6, style, Paint::faint);
  }
}

// Which lines these ranks entered it from: "entered from train.py:88", "entered from train.py:88 (rank 0) and
// train.py:90 (ranks 1, 2)".
std::string entered_from(const CollectiveStory& story, const std::vector<int>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> places;
  for (const RankInCollective& turn : story.per_rank) {
    if (!turn.where || !std::ranges::binary_search(ranks, turn.rank)) continue;
    const std::string place = short_place(*turn.where);
    const auto known = std::ranges::find(places, place, [](const auto& one) { return one.first; });
    if (known != places.end()) {
      known->second.push_back(turn.rank);
    } else {
      places.push_back({place, {turn.rank}});
    }
  }
  if (places.empty()) return "";
  if (places.size() == 1) return ", entered from " + places.front().first;
  std::string text;
  for (std::size_t i = 0; i < std::min(places.size(), kShownPlaces); ++i) {
    if (i > 0) text += i + 1 == places.size() ? " and " : ", ";
    text += places[i].first + " (" + ranks_text(places[i].second) + ")";
  }
  if (places.size() > kShownPlaces) text += " and " + counted(places.size() - kShownPlaces, "more line");
  return ", entered from " + text;
}

// "rank 2 kept ranks 0, 1 waiting for 3.1 s in all_reduce 4, entered from train.py:88"
std::string slow_headline(const Finding& finding, const std::vector<int>& waiting) {
  const CollectiveStory& story = *finding.collective;
  const std::string in = " in " + name_and_number(story) + entered_from(story, waiting);
  const std::string long_text = story.waited_ns > 0 ? " for " + seconds_text(story.waited_ns) : "";
  const bool somebody_late = !ranks_in(story, RankTurn::late).empty();
  if (somebody_late && !waiting.empty())
    return ranks_text(finding.ranks) + " kept " + ranks_text(waiting) + " waiting" + long_text + in;
  if (story.waited_ns > 0) return ranks_text(finding.ranks) + " spent " + seconds_text(story.waited_ns) + in;
  return ranks_text(finding.ranks) + (finding.ranks.size() == 1 ? " was" : " were") + in;
}

// "rank 2 entered broadcast of 4 bytes, rank 3 entered barrier, the others all_reduce of 4 bytes, as number 4 of their
// group"
std::string mismatch_headline(const Finding& finding) {
  const CollectiveStory& story = *finding.collective;
  std::vector<Camp> odd;
  for (const RankInCollective& turn : story.per_rank) {
    if (turn.state != RankTurn::entered_other) continue;
    const auto known = std::ranges::find(odd, turn.camp, [](const Camp& one) { return one.first->camp; });
    if (known != odd.end()) {
      known->ranks.push_back(turn.rank);
    } else {
      odd.push_back({&turn, {turn.rank}});
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(odd.size(), kShownOthers); ++i) {
    text += ranks_text(odd[i].ranks) + " " + odd[i].first->entered + ", ";
  }
  std::vector<int> more;
  for (std::size_t i = kShownOthers; i < odd.size(); ++i) {
    more.insert(more.end(), odd[i].ranks.begin(), odd[i].ranks.end());
  }
  std::ranges::sort(more);
  if (!more.empty()) text += ranks_text(more) + " something else, ";
  text += "the others " + entered_text(story.name, story.bytes, story.dtype, story.device).substr(8);
  return text + ", as number " + std::to_string(story.sequence) + " of their group";
}

// "rank 1 never entered all_reduce 11, which rank 0 waited in; it was last seen at train.py:13", "rank 3 left no trace
// here; ranks 0-2 waited in all_reduce 7"
std::string missing_text(const FirstFailure& failure) {
  const CollectiveStory& story = *failure.waiting;
  const std::string waiting = ranks_text(ranks_in(story, RankTurn::waiting)) + " waited in";
  const auto turn = std::ranges::find(story.per_rank, failure.missing.front(), &RankInCollective::rank);
  if (turn != story.per_rank.end() && turn->state == RankTurn::no_trace) {
    return ranks_text(failure.missing) + " left no trace here; " + waiting + " " + name_and_number(story);
  }
  const std::string text =
      ranks_text(failure.missing) + " never entered " + name_and_number(story) + ", which " + waiting;
  if (failure.missing.size() > 1 || turn == story.per_rank.end()) return text;
  if (turn->state == RankTurn::gone || turn->state == RankTurn::entered_other) return text + ": it " + turn->what;
  return turn->where ? text + "; it was last seen at " + short_place(*turn->where) : text;
}

// Nobody knows in which line a process was killed.
std::string place_text(const FirstFailure& failure) {
  if (!failure.last_operator) return failure.where ? ", at " + short_place(*failure.where) : "";
  std::string text = "; its last operator was at " + short_place(*failure.last_operator);
  const bool other = failure.where && !same_line(*failure.where, *failure.last_operator);
  return other ? text + ", the program's own last one at " + short_place(*failure.where) : text;
}

// "rank 0 was the first to give up, in step 4: it raised RuntimeError: …, at train.py:19"
std::string gave_up_text(const FirstFailure& failure) {
  std::string text = "rank " + std::to_string(*failure.rank) + " was the first to give up, in step ";
  text += std::to_string(failure.step) + ": it " + failure.what;
  return text + place_text(failure);
}

}  // namespace

std::string entered_text(std::string_view op, std::uint64_t bytes, std::string_view dtype, std::string_view device) {
  std::string text = "entered " + collective_name(op);
  if (bytes > 0) text += " of " + bytes_text(bytes);
  if (!dtype.empty()) text += " " + std::string(dtype);
  if (!device.empty()) text += " on " + std::string(device);
  return text;
}

std::optional<Frame> last_place_of(const Process& process) {
  const Thread* const thread = newest_thread(process);
  if (thread == nullptr || thread->last.front().at.file.empty()) return std::nullopt;
  return thread->last.front().at;
}

std::optional<Frame> last_own_place_of(const Process& process) {
  const Thread* const thread = newest_thread(process);
  return thread == nullptr ? std::nullopt : thread->last_own;
}

std::string last_operator_text(const Process& process) {
  const Thread* const thread = newest_thread(process);
  return thread == nullptr ? "" : "ran " + thread->last.front().op + " last";
}

std::string collective_headline(const Finding& finding) {
  const CollectiveStory& story = *finding.collective;
  const std::vector<int> waiting = ranks_in(story, RankTurn::waiting);
  if (finding.kind == Kind::collective_mismatch) return mismatch_headline(finding);
  if (finding.kind == Kind::collective_slow) return slow_headline(finding, waiting);
  return ranks_text(waiting) + " waited in " + name_and_number(story) + ", which " + ranks_text(finding.ranks) +
         " never entered";
}

std::vector<std::string> collective_lines(const CollectiveStory& story, const Style& style) {
  Lines lines;
  std::string heading = "What each rank did: " + name_and_number(story) + " of group " + story.group;
  if (!story.group_ranks.empty()) {
    std::vector<int> ranks = story.group_ranks;
    std::ranges::sort(ranks);
    heading += ", ranks " + ranges_of(ranks);
  }
  append_wrapped(lines, heading, 2, style, Paint::strong);
  for (const Camp& camp : camps_of(story)) {
    std::string text = ranks_text(camp.ranks) + " " + std::string(word_of(camp.first->state));
    if (!camp.first->what.empty()) text += ": " + camp.first->what;
    if (camp.first->where)
      text += (camp.first->at_last_operator ? ", last seen at " : ", at ") + short_place(*camp.first->where);
    append_wrapped(lines, text, 4, style);
    const bool missing = camp.first->state == RankTurn::never_entered || camp.first->state == RankTurn::late;
    if (missing && !camp.first->threads.empty()) append_stack(lines, camp.first->threads.front().frames, style);
  }
  return lines;
}

std::string first_failure_text(const FirstFailure& failure) {
  if (!failure.missing.empty()) return missing_text(failure);
  std::string text = failure.rank ? "rank " + std::to_string(*failure.rank) : std::string("a process");
  text += " failed first, in step " + std::to_string(failure.step) + ": it " + failure.what;
  return text + place_text(failure);
}

std::string earlier_failure_text(const EarlierFailure& failure) {
  return "in attempt " + std::to_string(failure.attempt) + " " + first_failure_text(failure.failure);
}

std::vector<std::string> earlier_failure_texts(const std::vector<EarlierFailure>& failures) {
  std::vector<std::string> texts;
  const std::size_t hidden = failures.size() - std::min(failures.size(), kToldAttempts);
  if (hidden > 0) texts.push_back(counted(hidden, "earlier attempt") + " failed, too");
  for (std::size_t i = hidden; i < failures.size(); ++i) texts.push_back(earlier_failure_text(failures[i]));
  return texts;
}

std::string then_waited_text(const FirstFailure& failure) {
  if (!failure.waiting) return "";
  const CollectiveStory& story = *failure.waiting;
  if (!failure.missing.empty()) return gave_up_text(failure);
  std::vector<int> waiting = ranks_in(story, RankTurn::waiting);
  if (failure.rank) std::erase(waiting, *failure.rank);
  if (waiting.empty()) return "";
  return ranks_text(waiting) + " then waited in " + name_and_number(story) + entered_from(story, waiting);
}

}  // namespace devsan::report
