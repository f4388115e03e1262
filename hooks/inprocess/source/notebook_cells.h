// What a notebook's kernel calls its cells.
#pragma once

#include <string_view>

#include "trace/file_layout.h"

namespace devsan::hooks {

// Writes "In [3]" to the trace for the file name that the kernel has given to a cell; nothing for other names. With the
// GIL. May throw std::bad_alloc.
void name_notebook_cell(trace::StringId file, std::string_view name);

}  // namespace devsan::hooks
