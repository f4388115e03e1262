// A call at the end of Python's interpreter, while its objects still live.
#pragma once

namespace devsan::hooks {

// Has the main thread register `function` with the module atexit, as soon as it comes to that: the program's own
// handlers run as ever. Called with the GIL, once. Does nothing where the interpreter takes no such call, and
// `function` is then never called, nor is it where the process ends otherwise (`os._exit`, a signal). It must not
// throw.
void call_at_interpreter_exit(void (*function)()) noexcept;

}  // namespace devsan::hooks
