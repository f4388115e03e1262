// Which of the processes that have a rank's number is that rank. Children of a worker have its number, too, and so have
// former attempts, and other programs that one run started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace devsan::report {

struct RankProcess {
  std::string host;
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  const std::string* command = nullptr;  // equal ones are one
  std::int64_t start_ns = 0;
  std::int64_t last_ns = 0;  // of the last thing that is known of it
  bool enters = false;       // collectives
  bool idle = false;         // it ran no operator, and nothing is known to have ended it
};

// Of one rank. Processes come in any order.
class RankProcesses {
 public:
  // Whether it is the rank, rather than the one that was until now.
  bool add(RankProcess process);

 private:
  bool descends(const RankProcess& process, const RankProcess& from) const;
  bool takes_over(const RankProcess& later, const RankProcess& earlier) const;

  std::vector<RankProcess> all_;
  std::size_t chosen_ = 0;
  bool has_chosen_ = false;
};

}  // namespace devsan::report
