// What the expressions of a running function stand for, as far as they are names, attributes and subscripts.
//
// With the GIL (PythonSection); runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <optional>
#include <string_view>

#include "hooks/inprocess/snapshot/object_search.h"

namespace devsan::hooks {

// A variable of a frame, or else a global one that it sees, as a root of a search; none where there is none.
std::optional<Place> variable_place(const void* frame, std::string_view name);
// What it is bound to; borrowed, and null where there is none.
void* variable_named(const void* frame, std::string_view name);

// The name at the start of a text ends here.
std::size_t end_of_name(std::string_view text, std::size_t begin);

// What the first step of `rest`, as ".scale", "[0]" or "[k]" by the value of `k` in the frame, leads to from an object;
// the step is taken off `rest`. Null where that begins with anything else, a call among it; without a frame (null) also
// for `[k]`.
void* next_object(const void* frame, void* object, std::string_view& rest);

// "self.blocks[k].feed"
void* object_behind(const void* frame, std::string_view path);

}  // namespace devsan::hooks
