#include "report/program/expressions.h"
#include "report/ranking/context.h"
#include "report/slice/conditions.h"
#include "report/slice/torch_names.h"

namespace devsan::report::ranking {

using program::Field;
using program::Kind;
using program::Node;

namespace {

bool is_variable(Node node) {
  return node.is(Kind::Identifier) || node.is(Kind::Attribute) || node.is(Kind::Subscript);
}

class Shape {
 public:
  Shape(const Context& context, Candidate& candidate) : context_(context), candidate_(candidate) {}

  void set_all() {
    const Node statement = candidate_.statement;
    const Node inner = statement.is(Kind::ExpressionStatement) || statement.is(Kind::ReturnStatement)
                           ? statement.only_child()
                           : statement;
    if (inner.is(Kind::Assignment) || inner.is(Kind::AugmentedAssignment)) assignment(inner);
    if (statement.is(Kind::ExpressionStatement) && inner.is(Kind::Call)) {
      set(Feature::calls_alone, true);
      call(inner);
    }
    if (statement.is(Kind::ReturnStatement)) returned(inner);
    set(Feature::tests_condition, statement.is(Kind::IfStatement) || statement.is(Kind::ElifClause) ||
                                      inner.child(Field::Right).is(Kind::ConditionalExpression));
    set(Feature::loops, statement.is(Kind::ForStatement) || statement.is(Kind::WhileStatement));
    set(Feature::defines, statement.is(Kind::FunctionDefinition) || statement.is(Kind::ClassDefinition) ||
                              statement.is(Kind::DecoratedDefinition));
    around(statement);
  }

 private:
  void set(Feature feature, bool value) { candidate_[feature] = value ? 1 : 0; }

  void assignment(Node inner) {
    const Node target = inner.child(Field::Left);
    const Node value = inner.child(Field::Right);
    set(Feature::assigns, inner.is(Kind::Assignment));
    set(Feature::augments, inner.is(Kind::AugmentedAssignment));
    set(Feature::assigns_name, target.is(Kind::Identifier));
    set(Feature::assigns_attribute, target.is(Kind::Attribute));
    set(Feature::assigns_entry, target.is(Kind::Subscript));
    set(Feature::value_is_name, is_variable(value));
    set(Feature::value_is_call, value.is(Kind::Call));
    set(Feature::value_is_arithmetic, value.is(Kind::BinaryOperator));
    set(Feature::value_is_comprehension, program::is_comprehension(value));
    set(Feature::value_is_display, value.is(Kind::List) || value.is(Kind::Dictionary));
    if (value.is(Kind::Call)) call(value);
  }

  void call(Node node) {
    const std::string_view name = slice::called_name(node);
    set(Feature::calls_program, context_.code.defines(name));
    set(Feature::calls_class, !name.empty() && name.front() >= 'A' && name.front() <= 'Z');
    set(Feature::calls_in_place, name.ends_with('_'));
    set(Feature::calls_fill, slice::fills_container(name));
  }

  void returned(Node value) {
    set(Feature::returns, true);
    set(Feature::returns_name, is_variable(value));
    set(Feature::returns_several,
        value.is(Kind::ExpressionList) || value.is(Kind::Tuple) || value.is(Kind::Dictionary) || value.is(Kind::List));
  }

  void around(Node statement) {
    for (Node at = statement.parent(); at && !slice::is_body(at); at = at.parent()) {
      if (at.is(Kind::ForStatement) || at.is(Kind::WhileStatement)) set(Feature::in_loop, true);
      if (at.is(Kind::IfStatement)) set(Feature::in_condition, true);
      if (at.is(Kind::WithStatement)) set(Feature::in_with, true);
      if (at.is(Kind::ElseClause)) set(Feature::in_else, true);
    }
  }

  const Context& context_;
  Candidate& candidate_;
};

}  // namespace

void set_shape(const Context& context, Candidate& candidate) {
  Shape(context, candidate).set_all();
}

}  // namespace devsan::report::ranking
