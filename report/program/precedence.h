// How tightly expressions bind, to know where parentheses are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "report/program/node.h"

namespace devsan::program {

// From the loosest.
enum class Binding : std::uint8_t {
  Walrus,       // before commas, since it is refused where those are allowed
  Commas,       // `a, b` without parentheses, and `yield`
  Conditional,  // and `lambda`
  Or,
  And,
  Not,
  Comparison,
  BitOr,
  BitXor,
  BitAnd,
  Shift,
  Sum,
  Product,
  Sign,
  Power,
  Await,
  Primary,
};

Binding binding_of(Node expression);
// What may stand in the place of the expression without parentheses.
Binding binding_needed(Node place);
// Of code that is one expression; none for other code.
std::optional<Binding> binding_of_code(std::string_view code);

}  // namespace devsan::program
