// Collectives in the report: how far each rank of a group got in one, and which rank failed first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/frame.h"

namespace devsan::report {

// Where a rank was when the others were in a collective.
enum class RankTurn : std::uint8_t { waiting, never_entered, finished, entered_other, gone, late, no_trace };
std::string_view name_of(RankTurn turn);

// What a thread did when a collective took too long.
struct ThreadStack {
  std::string name;       // as the module `threading` has it; "" where it has none
  std::uint32_t tid = 0;  // 0: not known
  std::vector<Frame> frames;
};

struct RankInCollective {
  int rank = 0;
  RankTurn state = RankTurn::waiting;
  std::optional<Frame> where;     // it entered it from, or was at instead
  std::string what;               // one sentence without a subject
  bool at_last_operator = false;  // `where` is the line of its last operator; where it ended is not known
  std::string entered{};          // what it entered, alone: "entered all_reduce of 16 bytes …"; empty where nothing
  int camp = 0;                   // in a mismatch: those of one number entered the same; 0: as most ranks did
  // Of its threads when a collective of the run took longer than `--hang-after`, each innermost first.
  std::vector<ThreadStack> threads{};
};

struct CollectiveStory {
  std::string name;              // "all_reduce"
  std::string group;             // torch's name for it
  std::vector<int> group_ranks;  // in the whole run, in the order of the group
  std::uint64_t sequence = 0;    // its number in the group, from 1
  std::string dtype;
  std::uint64_t bytes = 0;
  std::string device;
  std::vector<RankInCollective> per_rank;  // ascending
  std::int64_t waited_ns = 0;              // the longest wait of a rank; 0 where nobody told its end
};

std::vector<int> ranks_in(const CollectiveStory& story, RankTurn state);

// Of a run of several ranks.
struct FirstFailure {
  std::optional<int> rank;
  std::uint32_t step = 0;
  std::int64_t time_ns = 0;                // by the clock of the lowest rank's host
  std::string finding;                     // its id; empty where none is about it
  std::optional<Frame> where;              // the program's line
  std::optional<Frame> last_operator;      // where only that is known: its place; `where` is the program's last line
  std::string what;                        // "raised ValueError: …"
  std::optional<CollectiveStory> waiting;  // that others were in meanwhile
  // That never entered it, where the rank waited in it itself and failed for that: they began it. Or, where there are
  // none of these, that left no trace (RankTurn::no_trace), so that nobody knows.
  std::vector<int> missing{};
};

// The rank that failed first in an attempt, after which the launcher started the ranks again.
struct EarlierFailure {
  int attempt = 0;
  FirstFailure failure;  // with its rank; neither what others waited in nor a finding is known of it
};

// Members' ranks in the whole run, in the order of the group. Of a run of thousands each process has those of all: one
// list for each group. Null where they are not known.
using SharedRanks = std::shared_ptr<const std::vector<int>>;

// One collective that a process entered, for who wants to see them all.
struct CollectiveCall {
  std::string name;
  std::string group;
  SharedRanks group_ranks;
  std::uint64_t sequence = 0;  // 0: point-to-point
  std::optional<int> peer;     // of what is point-to-point: a rank of the group
  std::uint64_t bytes = 0;
  std::string dtype;
  std::string device;
  std::string state;      // "entered", "issued", "finished" or "failed"
  bool end_told = true;   // false: its backend tells nobody when it is finished
  bool captured = false;  // into a graph
  std::optional<Frame> where;
  std::uint32_t step = 0;
  std::int64_t entered_ns = 0;
  std::int64_t wait_ns = 0;  // when a thread last began to wait for it; 0: none has
  std::int64_t finished_ns = 0;
};

}  // namespace devsan::report
