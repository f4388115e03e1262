// The option `halt`: an error or a warning ends the process with 66. What PyTorch raised is left to the program first,
// which may catch it; the process is not ended for it, but ends with another status when it was not caught.
#pragma once

#include "trace/file_layout.h"

namespace devsan::hooks {

// A loud finding that nothing was raised for is on disk. Does not return with the option.
void halt_at_finding() noexcept;

// PyTorch raised, and the finding is loud. `may_be_caught_elsewhere`: another thread than the one that raised is given
// the exception, so that a process which ends well has caught it.
void halt_unless_handled(trace::MeetingPayload* raised, bool may_be_caught_elsewhere) noexcept;

// What a process that ends with `status` is to end with instead. `runs_exit_handlers`: it ends by exit() or a return
// from main, so a status of 0 speaks for what its threads did, too.
int status_with_halt(int status, bool runs_exit_handlers) noexcept;

}  // namespace devsan::hooks
