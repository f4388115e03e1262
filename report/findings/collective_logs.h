// What the ranks of a run have recorded of their collectives, and of what ended them: as much of each as it takes to
// compare them, since a run may have thousands.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/findings/rank_processes.h"
#include "report/model/host_clocks.h"
#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

// What makes groups of different processes one: torch's name of it, how many of that name came before, and its members.
struct GroupKey {
  std::string name;
  std::uint32_t again = 0;
  std::vector<int> ranks;  // in the whole run, in the order of the group; empty where torch did not say
  auto operator<=>(const GroupKey&) const = default;
};

struct EnteredCollective {
  const std::string* op = nullptr;  // "c10d::allreduce_"
  const std::string* dtype = nullptr;
  const std::string* device = nullptr;
  const Frame* at = nullptr;  // null where it is not known
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t other_bytes = 0;
  std::uint32_t step = 0;
  trace::CollectiveState state = trace::CollectiveState::none;
  std::uint8_t flags = 0;
  std::int64_t entered_ns = 0;
  std::int64_t finished_ns = 0;

  bool is_over() const { return state == trace::CollectiveState::finished; }
};

// Whether a rank has to do with the rest of its group in it, as far as anybody can tell. Null: it has not.
bool waits_in(const EnteredCollective* entry);

// One collective of a group, as its ranks have it.
struct CollectivePlace {
  const GroupKey* group = nullptr;
  std::uint64_t number = 0;
  auto operator<=>(const CollectivePlace&) const = default;
};

// In one group, of one rank.
struct GroupLog {
  std::uint64_t entered = 0;                             // the highest number
  std::map<std::uint64_t, EnteredCollective> by_number;  // the last ones, and the first that are not over
};

// Of a rank, in the process that was that rank last.
struct RankLog {
  int rank = 0;
  std::uint32_t pid = 0;
  std::string host;
  std::int64_t start_ns = 0;
  std::map<const GroupKey*, GroupLog> groups;
  std::optional<EnteredCollective> last;  // that it entered, in any group
  const GroupKey* last_group = nullptr;
  std::int64_t stuck_ns = 0;                // when a collective of the run had taken too long (`--hang-after`); 0: none
  std::vector<ThreadStack> threads;         // of its threads then, that of the main thread first
  std::uint64_t stuck_in = 0;               // the number plus 1 of the collective that it was in then; 0: in none
  std::optional<CollectivePlace> stuck_at;  // the same; none where nothing is left of that

  // Pids come again, also on one host.
  bool is_of(const Process& process) const {
    return pid == process.pid && start_ns == process.start_ns && host == process.host;
  }
};

class CollectiveLogs {
 public:
  // `process` describes the process that wrote the trace.
  void add(const trace::TraceFile& trace, const Process& process);

  const std::map<int, RankLog>& ranks() const { return ranks_; }
  const std::set<GroupKey>& groups() const { return groups_; }

  // By the clock of the lowest rank's host: what no rank can have finished before another had entered tells how far
  // that of another host is ahead. 0 where the clocks may well agree.
  HostClocks clocks() const;

 private:
  const std::string* text(std::string_view text);
  const Frame* frame(const trace::TraceFile& trace, trace::SiteId site);
  EnteredCollective entered(const trace::TraceFile& trace, const trace::CollectiveEntry& entry);
  void add_collectives(const trace::TraceFile& trace, RankLog& log);
  void add_long_waits(const trace::TraceFile& trace, const std::map<std::uint32_t, const GroupKey*>& groups,
                      RankLog& log);

  std::map<int, RankLog> ranks_;
  std::map<int, RankProcesses> processes_;
  std::set<GroupKey> groups_;
  std::set<std::string, std::less<>> texts_;
  std::deque<Frame> frames_;
  std::unordered_map<std::string, const Frame*> frame_by_place_;
};

// Makes equal lists of ranks one.
class RankLists {
 public:
  void share(std::vector<CollectiveCall>& calls);

 private:
  struct Less {
    bool operator()(const SharedRanks& left, const SharedRanks& right) const { return *left < *right; }
  };
  std::set<SharedRanks, Less> lists_;
};

// The last collectives of a process, newest first, for who wants to see them one by one.
std::vector<CollectiveCall> last_collectives_of(const trace::TraceFile& trace, std::size_t most);

}  // namespace devsan::report
