// Which assignment gave a variable the value that it has when a function has come to some instruction: those that lead
// there without another one in between, over every way through the function.
#pragma once

#include <vector>

#include "hooks/inprocess/interpreter/byte_code.h"

namespace devsan::hooks {

struct ReachingStores {
  std::vector<int> offsets;  // of the instructions that store it; `for` and `with` targets are among them
  bool from_start = false;   // the value may be the one it had at the start: an argument
};

// `name` is a variable of the function, `offset` the instruction that it has come to.
ReachingStores stores_reaching(const ByteCode& code, int offset, const void* name);

// Every instruction that does `operation` with this name.
std::vector<int> all_stores(const ByteCode& code, Operation operation, const void* name);

}  // namespace devsan::hooks
