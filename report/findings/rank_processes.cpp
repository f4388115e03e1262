#include "report/findings/rank_processes.h"

#include <utility>

namespace devsan::report {

bool RankProcesses::add(RankProcess process) {
  all_.push_back(std::move(process));
  const RankProcess& added = all_.back();
  if (!has_chosen_) {
    has_chosen_ = !added.idle;
    chosen_ = all_.size() - 1;
    return has_chosen_;
  }
  const RankProcess& chosen = all_[chosen_];
  const bool is_later = added.start_ns >= chosen.start_ns;
  if (is_later ? !takes_over(added, chosen) : (added.idle || takes_over(chosen, added))) return false;
  chosen_ = all_.size() - 1;
  return true;
}

// A pid comes again; a parent is that of the processes with it that began last before.
bool RankProcesses::descends(const RankProcess& process, const RankProcess& from) const {
  const RankProcess* one = &process;
  for (std::size_t depth = 0; depth < all_.size(); ++depth) {
    const RankProcess* parent = nullptr;
    for (const RankProcess& other : all_) {
      const bool fits = &other != one && other.pid == one->parent_pid && other.host == one->host;
      if (!fits || other.start_ns > one->start_ns) continue;
      if (parent == nullptr || other.start_ns > parent->start_ns) parent = &other;
    }
    if (parent == nullptr) return false;
    if (parent == &from) return true;
    one = parent;
  }
  return false;
}

bool RankProcesses::takes_over(const RankProcess& later, const RankProcess& earlier) const {
  // The parent may only have started the process that is the rank.
  if (descends(later, earlier)) return later.enters && !earlier.enters;
  if (later.enters) return true;
  // An attempt that failed early has entered nothing. What runs beside another process, or another program, is none.
  const bool follows = later.host != earlier.host || later.start_ns >= earlier.last_ns;
  return later.command == earlier.command && follows;
}

}  // namespace devsan::report
