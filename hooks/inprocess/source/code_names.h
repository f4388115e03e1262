// What a code object is called: its file and its function, as the trace has them. Needs no GIL: only memory that nobody
// changes is read.
#pragma once

#include <string_view>

#include "trace/file_layout.h"

namespace devsan::hooks {

// The path, absolute where that can be known.
trace::StringId file_of(const void* code) noexcept;

// The same of a path as a code object has it.
trace::StringId file_named(std::string_view file) noexcept;

// "Net.forward". CPython 3.10 knows "forward" alone: there it is read from the source, once for each code object, and
// where that does not tell, the function has its plain name.
trace::StringId qualified_name(const void* code) noexcept;

}  // namespace devsan::hooks
