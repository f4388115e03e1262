#include "report/program/precedence.h"

#include <string>

#include "report/program/expressions.h"
#include "report/program/source_file.h"

namespace devsan::program {
namespace {

Binding of_operator(std::string_view operation) {
  if (operation == "|") return Binding::BitOr;
  if (operation == "^") return Binding::BitXor;
  if (operation == "&") return Binding::BitAnd;
  if (operation == "<<" || operation == ">>") return Binding::Shift;
  if (operation == "+" || operation == "-") return Binding::Sum;
  if (operation == "**") return Binding::Power;
  return Binding::Product;
}

Binding tighter(Binding binding) {
  return static_cast<Binding>(static_cast<int>(binding) + 1);
}

// Operators of one rank group from the left, `**` from the right.
Binding needed_by_operation(Node parent, Node place) {
  const Binding own = binding_of(parent);
  const bool left = place.role() == Field::Left;
  switch (own) {
    case Binding::Power:
      return left ? Binding::Await : Binding::Sign;
    case Binding::Sign:
    case Binding::Not:
      return own;
    case Binding::Comparison:
      return Binding::BitOr;
    default:
      return left ? own : tighter(own);
  }
}

bool allows_commas(Node parent) {
  switch (parent.kind()) {
    case Kind::Assignment:
    case Kind::AugmentedAssignment:
    case Kind::ReturnStatement:
    case Kind::ExpressionStatement:
    case Kind::Yield:
    case Kind::ParenthesizedExpression:
    case Kind::ForStatement:
      return true;
    default:
      return false;
  }
}

}  // namespace

Binding binding_of(Node expression) {
  switch (expression.kind()) {
    case Kind::NamedExpression:
      return Binding::Walrus;
    case Kind::ExpressionList:
    case Kind::PatternList:
    case Kind::Yield:
      return Binding::Commas;
    case Kind::ConditionalExpression:
    case Kind::Lambda:
      return Binding::Conditional;
    case Kind::BooleanOperator:
      return operations(expression).front().operation == "or" ? Binding::Or : Binding::And;
    case Kind::NotOperator:
      return Binding::Not;
    case Kind::ComparisonOperator:
      return Binding::Comparison;
    case Kind::BinaryOperator:
      return of_operator(operations(expression).front().operation);
    case Kind::UnaryOperator:
      return Binding::Sign;
    case Kind::Await:
      return Binding::Await;
    default:
      return Binding::Primary;
  }
}

Binding binding_needed(Node place) {
  const Node parent = place.parent();
  switch (parent.kind()) {
    case Kind::Attribute:
    case Kind::Await:
      return Binding::Primary;
    case Kind::Call:
      return place.role() == Field::Function ? Binding::Primary : Binding::Commas;
    case Kind::Subscript:
      return place.role() == Field::Value ? Binding::Primary : Binding::Conditional;
    case Kind::BinaryOperator:
    case Kind::UnaryOperator:
    case Kind::BooleanOperator:
    case Kind::NotOperator:
    case Kind::ComparisonOperator:
      return needed_by_operation(parent, place);
    case Kind::ConditionalExpression:
      return conditional_parts(parent).if_false == place ? Binding::Conditional : Binding::Or;
    case Kind::ListSplat:
      return Binding::BitOr;
    case Kind::DictionarySplat:
      return Binding::BitOr;
    case Kind::ForInClause:
    case Kind::IfClause:
    case Kind::Interpolation:
      return Binding::Or;
    default:
      return allows_commas(parent) ? Binding::Commas : Binding::Conditional;
  }
}

std::optional<Binding> binding_of_code(std::string_view code) {
  // In parentheses a walrus and `yield` are expressions, too; a closing one in the code would leave them.
  const SourceFile inside("", "(" + std::string(code) + ")\n");
  const SourceFile file("", "x = " + std::string(code) + "\n");
  if (inside.has_errors()) return std::nullopt;
  const std::vector<Node> statements = inside.root().children();
  const Node whole = statements.size() == 1 ? statements.front().only_child() : Node();
  if (whole.end_byte() != code.size() + 2) return std::nullopt;
  if (whole.is(Kind::Tuple)) return Binding::Commas;
  if (whole.is(Kind::GeneratorExpression)) return Binding::Walrus;
  if (!whole.is(Kind::ParenthesizedExpression) || !whole.only_child()) return std::nullopt;
  // Lines are broken in it that only parentheses hold together.
  if (file.has_errors() || file.root().children().size() != 1) return Binding::Walrus;
  return binding_of(whole.only_child());
}

}  // namespace devsan::program
