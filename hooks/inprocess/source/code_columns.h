// Columns of calls and subscripts for CPython 3.10, which has none: told from the source and the byte code together,
// where they agree.
#pragma once

#include "hooks/inprocess/interpreter/python_frames.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Where the call or subscript stands in its file that `instruction` is of; `at`, where it is one of the interpreter's
// own lines alone, for anything else that runs, and where it is not certain. Needs no GIL, and allocates nothing.
CodeLocation with_columns(const CodeLocation& at, trace::StringId file, const void* code, int instruction) noexcept;

}  // namespace devsan::hooks
