// What can be known about the Python of this process, if it has one, without calling into it.
#pragma once

namespace devsan {

struct Interpreter {
  bool present = false;
  char version[24] = "";          // "3.11.2"
  const char* refusal = nullptr;  // why devsan does not serve it: one sentence
};

// `importing`: the calling thread is in the import system, so it holds the GIL and its own interpreter can be asked
// for.
Interpreter inspect_interpreter(bool importing) noexcept;

// The address of a function or variable of any object of the process; null where there is none.
void* find_in_process(const char* name) noexcept;

}  // namespace devsan
