// Tells a signal that was sent to devsan alone from one that its whole process group got, the user's command included
// (by the terminal, `kill %1`, timeout). Nothing in a signal says so, and to pass on one that the command has got
// already would run its handler twice.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

namespace devsan::launch {

// A process in devsan's group that does nothing but hold signals. The kernel hands a group's signal to the youngest
// member first, so a witness has it by the time devsan sees its own.
class GroupWitness {
 public:
  GroupWitness();  // all signals that matter must be blocked
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  // Whether the group got the `signal` that was just taken off this process's own; none when the witness is gone.
  std::optional<bool> saw(int signal);

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
  sigset_t merged_;  // pending here, but not for the witness any more
};

}  // namespace devsan::launch
