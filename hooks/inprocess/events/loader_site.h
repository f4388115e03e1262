// Where the program makes the DataLoader that gave it something in pageable memory. Reads source files alone, so that
// it needs no interpreter.
#pragma once

#include <span>

#include "trace/file_layout.h"

namespace devsan::hooks {

// The line that leaves `pin_memory=True` out: the call of `DataLoader` or, where that is given a variable or an
// argument of the function around, the line that gives this its value. None where a loader did not make the operand, or
// several lines may have made the loader. `frames`: those of the program that run now. Never throws.
trace::SiteId loader_site(std::span<const trace::OperandRecord> operands,
                          std::span<const trace::FrameRecord> frames) noexcept;

}  // namespace devsan::hooks
