// The byte code of a Python function, as far as it tells where names, attributes and entries were stored. Read from the
// code object as the compiler made it, without what the interpreter wrote into it while it ran.
//
// With the GIL (PythonSection). Allocates, and may throw std::bad_alloc; runs no code of the program.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hooks/inprocess/interpreter/code_api.h"

namespace devsan::hooks {

enum class Operation : std::uint8_t {
  other,
  cache,
  extend,
  store_variable,   // a local or, in a module or class body, a name; `operand` is its name
  store_cell,       // a local that inner functions share
  store_global,     // by a `global` declaration
  delete_variable,  // `operand` is its name
  store_attribute,  // `operand` is the attribute's name
  store_item,       // x[key] = …
  load_variable,    // `operand` is its name
  load_constant,    // `operand` is the constant; null where it is a small number
  load_attribute,   // `operand` is the attribute's name; also of a method about to be called
  with_cleanup,     // the code for an exception that leaves a `with` block begins
  jump,             // always, to `target`
  branch,           // perhaps, to `target`
  stop,             // returns or raises
};

struct Instruction {
  int offset = 0;  // in bytes, as frames count
  Operation operation = Operation::other;
  const void* operand = nullptr;  // borrowed from the code object
  int target = -1;                // offset
};

// Whether it loads a variable or an attribute of this name.
inline bool loads_name(const Instruction& one, std::string_view name) noexcept {
  return (one.operation == Operation::load_attribute || one.operation == Operation::load_variable) &&
         is_name(one.operand, name);
}

// An exception in [begin, end) goes on at `handler`.
struct HandlerRange {
  int begin = 0;
  int end = 0;
  int handler = 0;
};

class ByteCode {
 public:
  // Empty where the code is not understood, or too long. `code` must live as long as this.
  explicit ByteCode(const void* code);

  const void* code() const { return code_; }
  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<HandlerRange>& handlers() const { return handlers_; }
  // Index of the instruction at an offset, or of the one that the offset lies in; -1 where there is none.
  int index_at(int offset) const;

 private:
  void read_handlers();

  const void* code_;
  std::vector<Instruction> instructions_;
  std::vector<HandlerRange> handlers_;
};

}  // namespace devsan::hooks
