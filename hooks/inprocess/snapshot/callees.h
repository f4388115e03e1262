// Which function of the program a call runs, by its text.
//
// With the GIL (PythonSection); runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <string_view>

namespace devsan::hooks {

// Where the names of a text are looked up: in a function that has not returned, or in one that has, of which only the
// object is known that it was called on. Borrowed.
struct NameScope {
  const void* frame = nullptr;
  void* self = nullptr;
};

struct Callee {
  const void* code = nullptr;  // null where it cannot be told, and of a class
  void* self = nullptr;        // the object that it is called on; null where there is none
};
// `path` as "self.encoder", a module or another object that can be called; "model.loss"; "collate".
Callee callee_behind(const NameScope& scope, std::string_view path);

}  // namespace devsan::hooks
