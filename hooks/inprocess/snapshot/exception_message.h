// What an exception says, read without calling its __str__, which may be the program's own.
#pragma once

#include "trace/fixed_text.h"

namespace devsan::hooks {

struct ExceptionMessage {
  FixedText<1024> text;  // one line
  // Its class has a __str__ of its own: the text is the arguments in parentheses, "('lr', 3)".
  bool is_arguments = false;
};

// As str() has it for the exceptions of Python, for classes that are derived from them, and for numbers, texts, tuples
// and exceptions among the arguments. With the GIL (PythonSection), at a moment when time does not matter.
void tell_exception(const void* exception, ExceptionMessage& message) noexcept;

}  // namespace devsan::hooks
