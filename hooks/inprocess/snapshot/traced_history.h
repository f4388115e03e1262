// How dynamo came to a value that it computed: the steps of its graph, each with the line that the program has for it.
//
// With the GIL (PythonSection), while the traced call lasts. May throw std::bad_alloc.
#pragma once

#include <span>
#include <string_view>

#include "hooks/inprocess/snapshot/traced_call.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Of what a torch.fx.Node makes; none where a step on the way is not known. `functions`: those that are being read.
// Writes sites down: for a finding alone.
trace::LineageId history_of_node(const void* node, std::span<const TracedFunction> functions);

}  // namespace devsan::hooks
