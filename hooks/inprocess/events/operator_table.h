// The tables that tell which functions are replaced by what, and what the operators are called. Any source file adds to
// them: the linker puts all parts into one section each, in which gaps between parts are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "preload/hooks_abi.h"

#define DEVSAN_REPLACEMENTS __attribute__((used, section("devsan_replacements")))
#define DEVSAN_OPERATOR_TEXTS __attribute__((used, section("devsan_operator_texts")))

namespace devsan::hooks {

// As torch's own header says it: "aten::mul", "Tensor", "mul.Tensor(Tensor self, Tensor other) -> Tensor".
struct OperatorText {
  const char* name;
  const char* overload;
  const char* schema;
  std::uintptr_t id;  // trace::OperatorId
};

// All parts of the table of replacements, and the entries of tables, which stay where they are.
const HookTable* hook_table(std::span<const TableEntry> table_entries) noexcept;

// Reads the texts of all operators, and writes their names to the trace. Once, at attach; false where the trace numbers
// them differently.
bool register_operators() noexcept;

// The text of an operator by its id in the trace; null for others than the wrapped ones.
const OperatorText* operator_text(trace::OperatorId op) noexcept;

// Whether the operator makes new values on the device it is told (zeros, randn_like, new_empty), as its schema says.
bool is_factory(trace::OperatorId op) noexcept;

}  // namespace devsan::hooks
