// A collective on tensors of a device that its process group has no backend for: the group can get one.
#pragma once

#include "report/model/finding.h"
#include "report/slice/code.h"

namespace devsan::report {

// Where torch's own code or a library entered the collective, as FSDP does with what it offloads, the group's backend
// becomes the change, and what was the cause the first alternative. Where the program entered it, the group is the last
// alternative, or the cause if there is no other.
void add_group_backend(Finding& finding, slice::Codebase& codebase);

}  // namespace devsan::report
