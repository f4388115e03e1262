// The program that Python was given as a text: by `python -c`, or on its standard input.
#pragma once

#include <string>
#include <string_view>

namespace devsan::hooks {

// What Python calls the files of such code. Code that a program has made by exec() has the first name, too.
inline constexpr std::string_view kCommandFile = "<string>";
inline constexpr std::string_view kInputFile = "<stdin>";
inline constexpr std::string_view kExecutedFile = "<exec>";

// Remembers the code that the process was started with, whose outermost frame is below `frame`. Once, with the GIL.
void learn_command_code(const void* frame) noexcept;

// Whether a code object of the file kCommandFile was made by exec(), in a process that was started with `-c`.
bool is_executed(const void* code) noexcept;

// Empty where they are not known. May throw std::bad_alloc.
std::string text_of_command();
std::string text_of_input();

}  // namespace devsan::hooks
