#include "report/program/definition_collector.h"

#include <algorithm>

#include "report/program/expressions.h"
#include "report/program/literals.h"
#include "report/program/source_file.h"

namespace devsan::program {
namespace {

// Nobody unpacks deeper.
constexpr std::size_t kDeepestPattern = 32;
constexpr int kDeepestExpression = 100;

Definition pattern_of(DefinitionKind kind, Node statement, Node value) {
  Definition pattern;
  pattern.kind = kind;
  pattern.statement = statement;
  pattern.value = value;
  return pattern;
}

bool is_setattr(const CallParts& call) {
  const std::string name = dotted_name(call.callee);
  return name == "setattr" || name == "object.__setattr__";
}

// `(a) = v` unpacks nothing; `(a,) = v` does.
bool is_only_parenthesized(Node target) {
  if (!target.is(Kind::TuplePattern) || !target.only_child()) return false;
  return target.only_child().next_sibling().text() == ")";
}

// The grammar gives `as f` in `with a if b else c as f` to c.
Node as_pattern_in(Node value) {
  while (value.is(Kind::ConditionalExpression) || value.is(Kind::BooleanOperator) || value.is(Kind::NotOperator)) {
    const std::vector<Node> parts = value.children();
    value = parts.empty() ? Node() : parts.back();
  }
  return value.is(Kind::AsPattern) && !value.children().empty() ? value : Node();
}

// `and`, `or`, `… if … else …` and comprehensions may leave a part of themselves out.
bool always_evaluated(Node node) {
  int depth = 0;
  for (Node at = node.parent(); at; at = at.parent()) {
    if (++depth > kDeepestExpression) return false;
    switch (at.kind()) {
      case Kind::BooleanOperator:
        if (at.child(Field::Left).contains(node)) break;
        return false;
      case Kind::ConditionalExpression:
      case Kind::ComparisonOperator:
      case Kind::ListComprehension:
      case Kind::SetComprehension:
      case Kind::DictionaryComprehension:
      case Kind::GeneratorExpression:
        return false;
      case Kind::Block:
      case Kind::Module:
        return true;
      default:
        break;
    }
  }
  return true;
}

}  // namespace

std::vector<Definition> DefinitionCollector::collect() {
  for (std::uint32_t at = 0; at < file_.size(); ++at) visit(file_.node(at));
  return std::move(found_);
}

void DefinitionCollector::visit(Node node) {
  switch (node.kind()) {
    case Kind::Assignment:
      return assignment(node);
    case Kind::AugmentedAssignment:
      return targets(node.child(Field::Left), pattern_of(DefinitionKind::Augmented, node, node.child(Field::Right)));
    case Kind::NamedExpression:
      return targets(node.child(Field::Name), pattern_of(DefinitionKind::Walrus, node, node.child(Field::Value)));
    case Kind::ForStatement:
      return targets(node.child(Field::Left), pattern_of(DefinitionKind::LoopTarget, node, node.child(Field::Right)));
    case Kind::ForInClause:
      return targets(node.child(Field::Left),
                     pattern_of(DefinitionKind::ComprehensionTarget, node, node.child(Field::Right)));
    case Kind::WithItem:
      return with_item(node);
    case Kind::ExceptClause:
      return except_clause(node);
    case Kind::CaseClause:
      return match_pattern(node);
    case Kind::DeleteStatement:
      return deletion(node);
    case Kind::ImportStatement:
      return import(node);
    case Kind::ImportFromStatement:
    case Kind::FutureImportStatement:
      return import_from(node);
    case Kind::FunctionDefinition:
    case Kind::ClassDefinition:
      type_parameters(node);
      if (const Node name = node.child(Field::Name)) {
        const bool function = node.is(Kind::FunctionDefinition);
        add(name, pattern_of(function ? DefinitionKind::Function : DefinitionKind::Class, node, node));
      }
      break;
    case Kind::TypeAliasStatement:
      return type_alias(node);
    case Kind::Call:
      return call(node);
    default:
      break;
  }
  if (const Scope* scope =
          node.is(Kind::FunctionDefinition) || node.is(Kind::Lambda) ? scopes_.made_by(node) : nullptr) {
    parameters(*scope);
  }
}

// `a = b = value` is an assignment on the right of another; each target gets the one value.
void DefinitionCollector::assignment(Node node) {
  if (node.parent().is(Kind::Assignment)) return;
  Node last = node;
  while (last.child(Field::Right).is(Kind::Assignment)) last = last.child(Field::Right);
  const Node value = last.child(Field::Right);
  for (Node at = node; at.is(Kind::Assignment); at = at.child(Field::Right)) {
    const bool gives = value || at.child(Field::Right);
    targets(at.child(Field::Left),
            pattern_of(gives ? DefinitionKind::Assignment : DefinitionKind::Declaration, at, value));
  }
}

void DefinitionCollector::with_item(Node node) {
  const Node value = node.child(Field::Value);
  const Node as = as_pattern_in(value);
  if (!as) return;
  targets(as.child(Field::Alias),
          pattern_of(DefinitionKind::WithTarget, node, as == value ? as.children().front() : value));
}

void DefinitionCollector::except_clause(Node node) {
  const Node value = node.child(Field::Value);
  const Node as = as_pattern_in(value);
  const Node alias = as ? as.child(Field::Alias) : node.child(Field::Alias);
  if (!alias) return;
  targets(alias, pattern_of(DefinitionKind::ExceptTarget, node, as && as == value ? as.children().front() : value));
}

void DefinitionCollector::deletion(Node node) {
  for (const Node child : node.children()) targets(child, pattern_of(DefinitionKind::Delete, node, Node()));
}

void DefinitionCollector::parameters(const Scope& scope) {
  for (const Parameter& parameter : scope.parameters) {
    const Node parent = parameter.node.parent();
    const Node statement = parent == scope.node.child(Field::Parameters) ? parameter.node : parent;
    add(parameter.node, pattern_of(DefinitionKind::Parameter, statement, parameter.default_value));
  }
}

void DefinitionCollector::import(Node node) {
  for (const Node item : node.children(Field::Name)) imported(item, "", node);
}

void DefinitionCollector::import_from(Node node) {
  const Node module = node.child(Field::ModuleName);
  std::string from(node.is(Kind::FutureImportStatement) ? "__future__" : module.text());
  std::erase_if(from, [](char c) { return c == ' ' || c == '\t' || c == '\\' || c == '\n' || c == '\r'; });
  for (const Node item : node.children(Field::Name)) imported(item, from, node);
  for (const Node item : node.children()) {
    if (!item.is(Kind::WildcardImport)) continue;
    Definition star = pattern_of(DefinitionKind::StarImport, node, Node());
    star.origin = from;
    star.certain = false;
    add(item, std::move(star));
  }
}

// `import a.b` binds a, as the module a; `import a.b as c` binds c, as the module a.b.
void DefinitionCollector::imported(Node item, const std::string& module, Node statement) {
  Definition definition = pattern_of(DefinitionKind::Import, statement, Node());
  const bool renamed = item.is(Kind::AliasedImport);
  const Node name = renamed ? item.child(Field::Name) : item;
  const std::vector<Node> parts = name.children();
  if (parts.empty()) return;
  const bool first_only = module.empty() && !renamed;
  definition.origin = module;
  for (const Node part : parts) {
    if (!definition.origin.empty() && definition.origin.back() != '.') definition.origin += '.';
    definition.origin += part.text();
    if (first_only) break;
  }
  add(renamed ? item.child(Field::Alias) : parts.front(), std::move(definition));
}

// The first identifier of each: `T: int`, `*Ts`, `**P`, `T = int`.
void DefinitionCollector::type_parameters(Node node) {
  for (const Node type : node.child(Field::TypeParameters).children()) {
    Node at = type;
    while (at && !at.is(Kind::Identifier)) at = at.children().empty() ? Node() : at.children().front();
    if (at) add(at, pattern_of(DefinitionKind::TypeParameter, type, Node()));
  }
}

void DefinitionCollector::type_alias(Node node) {
  Node at = node.child(Field::Left);
  while (at && !at.is(Kind::Identifier)) at = at.children().empty() ? Node() : at.children().front();
  if (at) add(at, pattern_of(DefinitionKind::TypeAlias, node, node.child(Field::Right)));
}

void DefinitionCollector::call(Node node) {
  const Node arguments = node.child(Field::Arguments);
  if (!arguments.is(Kind::ArgumentList)) return;
  const std::string_view callee = node.child(Field::Function).text();
  if (!callee.ends_with("setattr") && !callee.ends_with("__setattr__")) return;
  const CallParts parts = call_parts(node);
  if (!is_setattr(parts) || parts.arguments.size() != 3 || parts.positional.size() != 3) return;
  const auto name = string_value(parts.positional[1]);
  auto object = variable_of(parts.positional[0]);
  if (!name) return;
  Definition definition = pattern_of(DefinitionKind::SetAttribute, node, parts.positional[2]);
  definition.variable = object ? std::move(*object) : Variable();
  definition.variable.steps.push_back("." + *name);
  add(node, std::move(definition));
}

// Names that a case gives to what it matches. A name alone captures; a dotted one is compared.
void DefinitionCollector::match_pattern(Node node) {
  const std::vector<Node> subjects = node.parent().parent().children(Field::Subject);
  const Definition pattern =
      pattern_of(DefinitionKind::MatchCapture, node, subjects.size() == 1 ? subjects.front() : Node());
  for (const Node part : node.children()) {
    if (!part.is(Kind::CasePattern)) continue;
    for (std::uint32_t at = part.index(); at < part.subtree_end(); ++at) {
      const Node name = file_.node(at);
      if (!name.is(Kind::Identifier)) continue;
      const Node parent = name.parent();
      const bool alone = parent.is(Kind::DottedName) && parent.only_child() && !parent.parent().is(Kind::ClassPattern);
      const bool bound = (parent.is(Kind::AsPattern) && parent.children().back() == name) ||
                         parent.is(Kind::AsPatternTarget) || parent.is(Kind::SplatPattern);
      if (alone || bound) add(name, pattern);
    }
  }
}

void DefinitionCollector::targets(Node target, const Definition& pattern) {
  while (target.is(Kind::ParenthesizedExpression) || target.is(Kind::AsPatternTarget) ||
         target.is(Kind::ListSplatPattern) || target.is(Kind::ListSplat) || is_only_parenthesized(target)) {
    target = target.only_child();
  }
  switch (target.kind()) {
    case Kind::Identifier:
    case Kind::Attribute:
    case Kind::Subscript:
      return add(target, pattern);
    case Kind::PatternList:
    case Kind::TuplePattern:
    case Kind::ListPattern:
    case Kind::Tuple:
    case Kind::List:
    case Kind::ExpressionList:
      return unpacked(target.children(), pattern);
    default:
      return;
  }
}

void DefinitionCollector::unpacked(const std::vector<Node>& elements, const Definition& pattern) {
  if (pattern.path.size() >= kDeepestPattern) return;
  const auto starred = [](Node node) { return node.is(Kind::ListSplatPattern) || node.is(Kind::ListSplat); };
  const auto star = std::find_if(elements.begin(), elements.end(), starred);
  for (auto at = elements.begin(); at != elements.end(); ++at) {
    Definition inner = pattern;
    const auto from_start = static_cast<int>(at - elements.begin());
    const auto from_end = -static_cast<int>(elements.end() - at);
    inner.path.push_back(at == star ? Definition::kRest : at > star ? from_end : from_start);
    targets(*at, inner);
  }
}

void DefinitionCollector::add(Node target, Definition definition) {
  definition.target = target;
  if (definition.kind != DefinitionKind::SetAttribute && definition.kind != DefinitionKind::StarImport) {
    auto variable = variable_of(target);
    if (!variable) return;
    definition.variable = std::move(*variable);
  }
  const Scope* scope = &scopes_.of(target);
  if (definition.kind == DefinitionKind::Walrus || definition.kind == DefinitionKind::SetAttribute) {
    while (scope->kind == ScopeKind::Comprehension) scope = scope->parent;
    definition.certain = always_evaluated(target);
  }
  definition.scope = scope;
  found_.push_back(std::move(definition));
}

}  // namespace devsan::program
