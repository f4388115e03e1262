#include "report/program/expressions.h"

#include <algorithm>

#include "report/program/source_file.h"

namespace devsan::program {
namespace {

Argument argument_of(Node node) {
  Argument argument;
  argument.node = node;
  argument.value = node;
  if (node.is(Kind::KeywordArgument)) {
    argument.kind = Argument::Kind::Keyword;
    argument.name = node.child(Field::Name).text();
    argument.value = node.child(Field::Value);
  } else if (node.is(Kind::ListSplat) || node.is(Kind::DictionarySplat)) {
    argument.kind = node.is(Kind::ListSplat) ? Argument::Kind::Star : Argument::Kind::DoubleStar;
    argument.value = node.only_child();
  }
  return argument;
}

// Operators of a comparison are tokens; `is not` and `not in` may come as one or as two.
std::vector<OperationParts> comparisons(Node node) {
  std::vector<OperationParts> found;
  OperationParts next;
  const std::string_view text = node.file().text();
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  for (Node at = node.first_child(); at; at = at.next_sibling()) {
    if (at.is(Kind::Comment) || at.is(Kind::LineContinuation)) continue;
    if (at.role() == Field::Operators || at.is(Kind::Token)) {
      if (from == 0) from = at.begin_byte();
      to = at.end_byte();
      continue;
    }
    if (next.left && from != 0) {
      next.operation = text.substr(from, to - from);
      next.right = at;
      found.push_back(next);
    }
    next.left = at;
    from = 0;
  }
  return found;
}

bool is_operation(Node node) {
  return node.is(Kind::BinaryOperator) || node.is(Kind::BooleanOperator) || node.is(Kind::ComparisonOperator) ||
         node.is(Kind::UnaryOperator) || node.is(Kind::NotOperator);
}

}  // namespace

Node CallParts::keyword(std::string_view name) const {
  for (const Argument& each : arguments) {
    if (each.kind == Argument::Kind::Keyword && each.name == name) return each.value;
  }
  return {};
}

Node CallParts::argument(std::string_view name, std::size_t place) const {
  if (const Node given = keyword(name)) return given;
  return place < positional.size() ? positional[place] : Node();
}

Node CallParts::receiver() const {
  return callee.child(Field::Object);
}

std::string_view CallParts::method() const {
  return callee.child(Field::Attribute).text();
}

CallParts call_parts(Node node) {
  CallParts parts;
  if (!node.is(Kind::Call)) return parts;
  parts.call = node;
  parts.callee = node.child(Field::Function);
  const Node list = node.child(Field::Arguments);
  // The one argument `x for x in y` has no parentheses of its own.
  const std::vector<Node> given = list.is(Kind::ArgumentList) ? list.children() : std::vector<Node>{list};
  for (const Node each : given) {
    if (!each || each.is(Kind::Error)) continue;
    const Argument argument = argument_of(each);
    parts.has_star = parts.has_star || argument.kind == Argument::Kind::Star;
    parts.has_double_star = parts.has_double_star || argument.kind == Argument::Kind::DoubleStar;
    if (argument.kind == Argument::Kind::Positional && !parts.has_star) parts.positional.push_back(argument.value);
    parts.arguments.push_back(argument);
  }
  return parts;
}

std::vector<OperationParts> operations(Node node) {
  switch (node.kind()) {
    case Kind::BinaryOperator:
    case Kind::BooleanOperator:
      return {{node.child(Field::Operator).text(), node.child(Field::Left), node.child(Field::Right)}};
    case Kind::UnaryOperator:
      return {{node.child(Field::Operator).text(), Node(), node.child(Field::Argument)}};
    case Kind::NotOperator:
      return {{"not", Node(), node.child(Field::Argument)}};
    case Kind::ComparisonOperator:
      return comparisons(node);
    default:
      return {};
  }
}

std::vector<Node> operands(Node node, bool flat) {
  std::vector<Node> found;
  std::vector<Node> open{node};
  while (!open.empty()) {
    const Node at = open.back();
    open.pop_back();
    const Node bare = flat ? without_parentheses(at) : at;
    if (at != node && !(flat && is_operation(bare))) {
      found.push_back(at);
      continue;
    }
    const std::vector<OperationParts> parts = operations(bare);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) open.push_back(part->right);
    if (!parts.empty() && parts.front().left) open.push_back(parts.front().left);
  }
  return found;
}

ConditionalParts conditional_parts(Node node) {
  if (!node.is(Kind::ConditionalExpression)) return {};
  const std::vector<Node> parts = node.children();
  return parts.size() == 3 ? ConditionalParts{parts[1], parts[0], parts[2]} : ConditionalParts{};
}

std::vector<Node> elements(Node display) {
  switch (display.kind()) {
    case Kind::ParenthesizedExpression:
      return elements(without_parentheses(display));
    case Kind::List:
    case Kind::Tuple:
    case Kind::Set:
    case Kind::ExpressionList:
    case Kind::PatternList:
    case Kind::TuplePattern:
    case Kind::ListPattern:
      return display.children();
    case Kind::Dictionary:
      break;
    default:
      return {};
  }
  std::vector<Node> values;
  for (const Entry& entry : entries(display)) values.push_back(entry.value);
  return values;
}

std::vector<Entry> entries(Node dictionary) {
  std::vector<Entry> found;
  if (!dictionary.is(Kind::Dictionary)) return found;
  for (const Node child : dictionary.children()) {
    if (child.is(Kind::Pair)) found.push_back({child.child(Field::Key), child.child(Field::Value)});
    if (child.is(Kind::DictionarySplat)) found.push_back({Node(), child.only_child()});
  }
  return found;
}

bool is_comprehension(Node node) {
  return node.is(Kind::ListComprehension) || node.is(Kind::SetComprehension) ||
         node.is(Kind::DictionaryComprehension) || node.is(Kind::GeneratorExpression);
}

ComprehensionParts comprehension_parts(Node node) {
  ComprehensionParts parts;
  if (!is_comprehension(node)) return parts;
  const Node body = node.child(Field::Body);
  parts.element = body.is(Kind::Pair) ? body.child(Field::Value) : body;
  parts.key = body.child(Field::Key);
  for (const Node child : node.children()) {
    if (child.is(Kind::ForInClause) || child.is(Kind::IfClause)) parts.clauses.push_back(child);
  }
  return parts;
}

Node without_parentheses(Node node) {
  while (node.is(Kind::ParenthesizedExpression) && node.only_child()) node = node.only_child();
  return node;
}

Node awaited(Node node) {
  node = without_parentheses(node);
  while (node.is(Kind::Await) && node.only_child()) node = without_parentheses(node.only_child());
  return node;
}

std::string dotted_name(Node node) {
  std::vector<std::string_view> parts;
  for (; node.is(Kind::Attribute); node = node.child(Field::Object))
    parts.push_back(node.child(Field::Attribute).text());
  if (!node.is(Kind::Identifier) && !node.is(Kind::DottedName)) return "";
  std::string name(node.text());
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    name += '.';
    name += *part;
  }
  return name;
}

Node root_of(Node node) {
  for (;;) {
    node = awaited(node);
    if (node.is(Kind::Attribute)) {
      node = node.child(Field::Object);
    } else if (node.is(Kind::Subscript)) {
      node = node.child(Field::Value);
    } else if (node.is(Kind::Call)) {
      node = node.child(Field::Function);
    } else {
      return node.is(Kind::Identifier) ? node : Node();
    }
  }
}

}  // namespace devsan::program
