// Where the program makes the DataLoader that gave it something in pageable memory. Reads source files alone, so that
// it needs no interpreter.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trace/file_layout.h"

namespace devsan::hooks {

// The line that leaves `pin_memory=True` out: the call of `DataLoader` or, where that is given a variable or an
// argument of the function around, the line that gives this its value. None where a loader did not make the operand, or
// several lines may have made the loader. `frames`: those of the program that run now. Never throws.
trace::SiteId loader_site(std::span<const trace::OperandRecord> operands,
                          std::span<const trace::FrameRecord> frames) noexcept;

// The only line, in the file where a loader gave what an operand was made of or in the others, that may have made that
// loader; none where several may, or none gave it. May throw std::bad_alloc.
std::optional<trace::Position> loader_made_at(const trace::OperandRecord& operand,
                                              const std::vector<trace::StringId>& files);

}  // namespace devsan::hooks
