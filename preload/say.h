// Tells the user something, on the stderr that the process was started with.
#pragma once

namespace devsan {

// Remembers which file fd 2 is. Called once, at start-up.
void remember_stderr() noexcept;
void set_quiet(bool quiet) noexcept;

// Writes "devsan: ", the text and a line feed by one system call. Nothing when quiet, when fd 2 has become another file
// by now, or when its reader does not take it. Async-signal-safe; keeps errno.
void say(const char* text) noexcept;

}  // namespace devsan
