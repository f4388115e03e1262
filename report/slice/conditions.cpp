#include "report/slice/conditions.h"

namespace devsan::report::slice {

using program::Field;
using program::Kind;
using program::Node;

namespace {

bool leaves(Node statement) {
  return statement.is(Kind::ReturnStatement) || statement.is(Kind::ContinueStatement) ||
         statement.is(Kind::BreakStatement) || statement.is(Kind::RaiseStatement);
}

void add_exits(Node block, Node inner, std::vector<Condition>& found) {
  for (const Node before : block.children()) {
    if (before.begin_byte() >= inner.begin_byte()) return;
    if (!before.is(Kind::IfStatement)) continue;
    const std::vector<Node> body = before.child(Field::Consequence).children();
    if (!body.empty() && leaves(body.back())) found.push_back({before, before.child(Field::Condition), true});
  }
}

}  // namespace

std::vector<Condition> conditions_on(Node node) {
  std::vector<Condition> found;
  Node inner = node;
  for (Node at = node.parent(); at && !is_body(at); inner = at, at = at.parent()) {
    const bool conditional = at.is(Kind::IfStatement) || at.is(Kind::ElifClause) || at.is(Kind::WhileStatement);
    const Node condition = conditional ? at.child(Field::Condition) : Node();
    if (condition && condition != inner) found.push_back({at, condition, false});
    if (at.is(Kind::Block)) add_exits(at, inner, found);
  }
  return found;
}

bool is_body(Node node) {
  return node.is(Kind::FunctionDefinition) || node.is(Kind::Lambda) || node.is(Kind::Module) ||
         node.is(Kind::ClassDefinition);
}

}  // namespace devsan::report::slice
