// Restarts of a whole job whose nodes count them differently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/model/host_clocks.h"
#include "report/model/run.h"

namespace devsan::report {

// torchrun's agents start all workers of a job again when one of them fails, or when a node comes or goes. Only the
// agent whose worker failed counts that (pytorch/pytorch#108158), so the same number means different attempts on
// different nodes. That all workers have ended before any is started again holds everywhere, and times tell it.
class Restarts {
 public:
  // The workers of one rank and command, the earliest first.
  void add(const std::vector<Process>& processes, const std::vector<std::size_t>& workers, const HostClocks& clocks);

  // Whether the numbers that the launcher told do not tell the attempts apart.
  bool are_counted_differently() const;

  // Sets `attempt` of the workers that the launcher told one; worker[i] == i of those alone. To be called after all
  // have been added.
  void number(std::vector<Process>& processes, const std::vector<std::size_t>& worker, const HostClocks& clocks);

 private:
  // Between the last that is known of a worker and the beginning of the next one of its rank.
  struct Restart {
    std::int64_t from_ns = 0;
    std::int64_t to_ns = 0;
    int counted = 1;
    bool overlaps(const Restart& other) const { return from_ns < other.to_ns && other.from_ns < to_ns; }
  };
  void unite();

  std::vector<Restart> restarts_;
  std::vector<Restart> unsure_;  // a wrapper of a rank may also have run its program twice in one attempt
  bool moved_ = false;
};

}  // namespace devsan::report
