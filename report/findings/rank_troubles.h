// What went wrong in each rank, and where that began.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/findings/collective_logs.h"
#include "report/model/run.h"

namespace devsan::report {

struct RankTrouble {
  std::int64_t time_ns = 0;  // by the clock of the lowest rank's host; 0 not known
  std::int64_t gone_ns = 0;  // when the process had ended, by the same clock; 0 not known
  std::uint32_t step = 0;
  std::optional<Frame> where;
  std::optional<Frame> last_operator;  // as of a FirstFailure
  std::string what;                    // "raised ValueError: …", "was ended by SIGKILL"
  bool from_collective = false;        // a collective failed, or waited in vain: what another rank did may be behind it
  bool lost_peer = false;              // the same, and it says that another rank had gone before
  bool from_outside = false;           // somebody ended the process, as launchers do once another rank has failed
  bool raised = false;                 // an exception that nothing caught
  bool left = false;                   // with a status that says it failed
  bool had_error = false;              // a finding in this process alone, which may be why it left
  bool end_unknown = false;            // nobody was told how it ended
};

// Which of the processes had been ended for the failure of another rank: `ended_after`. To be called when all processes
// of the run are known, with their attempts. Returns which rank failed first in each attempt before the newest, where
// one did, the earliest attempt first.
std::vector<EarlierFailure> tell_ended_after(std::vector<Process>& processes, const CollectiveLogs& logs,
                                             const HostClocks& clocks);

// By rank; ranks that ended well, or that still run, have none.
std::map<int, RankTrouble> troubles_of(const std::vector<Process>& processes, const CollectiveLogs& logs,
                                       const HostClocks& clocks);

// What is known of it alone, without the findings and the other ranks' collectives.
FirstFailure failure_of(const std::pair<const int, RankTrouble>& trouble);

// The one that began it: the earliest that nothing else explains. Null where all is well, or somebody
// ended ranks that were.
const std::pair<const int, RankTrouble>* first_trouble(const std::map<int, RankTrouble>& troubles);

}  // namespace devsan::report
