// Runs the user's command as a child that cannot tell it from being run by the shell.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/environment.h"

namespace devsan::launch {

struct Ending {
  int start_error = 0;  // errno of exec; 0 when the command was started
  int wait_status = 0;
  pid_t pid = 0;  // of the command
};

// The command runs in this process's group and on its terminal, with the signal mask and dispositions that devsan was
// started with. Signals that another process sends to devsan reach it, those of the terminal reach it anyway; it stops
// and goes on together with devsan; it dies with devsan.
Ending supervise(const std::vector<std::string>& command, Environment& environment);

// As a shell tells it: the command's own, or 128 + signal.
int exit_status(const Ending& ending);

}  // namespace devsan::launch
