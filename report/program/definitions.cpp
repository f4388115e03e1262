#include "report/program/definitions.h"

#include "report/program/definition_collector.h"
#include "report/program/source_file.h"

namespace devsan::program {
namespace {

// The element of a display at that place; negative places count from the end.
Node element_at(const std::vector<Node>& elements, int place) {
  const auto count = static_cast<int>(elements.size());
  for (int at = 0; at < count; ++at) {
    // What stands behind a starred element has no place of its own.
    if (elements[static_cast<std::size_t>(at)].is(Kind::ListSplat)) {
      if (place >= 0 && at <= place) return {};
      if (place < 0 && at >= count + place) return {};
    }
  }
  const int at = place < 0 ? count + place : place;
  return at >= 0 && at < count ? elements[static_cast<std::size_t>(at)] : Node();
}

std::vector<const Definition*> chosen(const std::vector<Definition>& all, const std::vector<std::uint32_t>* places) {
  std::vector<const Definition*> found;
  if (places == nullptr) return found;
  for (const std::uint32_t place : *places) found.push_back(&all[place]);
  return found;
}

template <typename Map, typename Key>
auto* find_in(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// Where the names of a nonlocal statement are: the nearest function around that has them.
const Scope* nonlocal_owner(const Scope& scope, std::string_view name) {
  for (const Scope* at = scope.parent; at != nullptr; at = at->parent) {
    if (at->is_function() && at->names.contains(name)) return at;
  }
  return nullptr;
}

}  // namespace

Node Definition::own_value() const {
  Node at = value;
  for (const int place : path) {
    while (at.is(Kind::ParenthesizedExpression)) at = at.only_child();
    const bool display = at.is(Kind::Tuple) || at.is(Kind::List) || at.is(Kind::ExpressionList);
    if (!display || place == kRest) return {};
    at = element_at(at.children(), place);
  }
  const bool iterated = kind == DefinitionKind::LoopTarget || kind == DefinitionKind::ComprehensionTarget;
  return iterated ? Node() : at;
}

Definitions::Definitions(const SourceFile& file, Scopes& scopes) : all_(DefinitionCollector(file, scopes).collect()) {
  bind(scopes);
  index_uses(file, scopes);
}

void Definitions::bind(Scopes& scopes) {
  for (const Definition& each : all_) {
    if (!each.is_name() || each.variable.name.empty()) continue;
    Scope& scope = scopes.edit(*each.scope);
    const std::string_view name = each.variable.name;
    if (scope.globals.contains(name)) {
      scopes.edit(scopes.module()).names.insert(name);
    } else if (!scope.nonlocals.contains(name)) {
      scope.names.insert(name);
    }
  }
  for (std::uint32_t at = 0; at < all_.size(); ++at) {
    Definition& each = all_[at];
    const std::string_view name = each.variable.name;
    const bool nonlocal = each.scope->nonlocals.contains(name);
    if (!name.empty()) each.binding = nonlocal ? nonlocal_owner(*each.scope, name) : scopes.binding(name, *each.scope);
    if (each.binding != nullptr) by_root_[{each.binding->id, name}].push_back(at);
    if (each.is_name() && each.binding != nullptr) by_name_[{each.binding->id, name}].push_back(at);
    if (each.is_attribute_store()) by_attribute_[each.variable.steps.back().substr(1)].push_back(at);
    by_node_[each.target.index()].push_back(at);
    if (each.statement != each.target) by_node_[each.statement.index()].push_back(at);
    by_scope_[each.scope->id].push_back(at);
  }
}

void Definitions::index_uses(const SourceFile& file, const Scopes& scopes) {
  for (std::uint32_t at = 0; at < file.size(); ++at) {
    const Node node = file.node(at);
    if (!node.is(Kind::Identifier) || !is_variable_name(node)) continue;
    const auto* defined = find_in(by_node_, at);
    const bool target = defined != nullptr && all_[defined->front()].target == node;
    if (target && all_[defined->front()].kind != DefinitionKind::Augmented) continue;
    const Scope* owner = scopes.binding(node.text(), scopes.of(node));
    if (owner != nullptr) uses_[{owner->id, node.text()}].push_back(node);
  }
}

std::vector<const Definition*> Definitions::of_name(const Scope& binding, std::string_view name) const {
  return chosen(all_, find_in(by_name_, Key{binding.id, name}));
}

std::vector<const Definition*> Definitions::of_root(const Scope& binding, std::string_view name) const {
  return chosen(all_, find_in(by_root_, Key{binding.id, name}));
}

std::vector<const Definition*> Definitions::of_attribute(std::string_view name) const {
  return chosen(all_, find_in(by_attribute_, name));
}

std::vector<const Definition*> Definitions::at(Node node) const {
  return chosen(all_, find_in(by_node_, node.index()));
}

std::vector<const Definition*> Definitions::in(const Scope& scope) const {
  return chosen(all_, find_in(by_scope_, scope.id));
}

std::vector<Node> Definitions::uses(const Scope& binding, std::string_view name) const {
  const auto* found = find_in(uses_, Key{binding.id, name});
  return found == nullptr ? std::vector<Node>() : *found;
}

bool is_variable_name(Node identifier) {
  const Node parent = identifier.parent();
  switch (parent.kind()) {
    case Kind::Attribute:
      return identifier.role() != Field::Attribute;
    case Kind::KeywordArgument:
    case Kind::FunctionDefinition:
    case Kind::ClassDefinition:
      return identifier.role() != Field::Name;
    case Kind::GlobalStatement:
    case Kind::NonlocalStatement:
    case Kind::AliasedImport:
      return false;
    case Kind::KeywordPattern:
      return parent.first_child() != identifier;
    case Kind::DottedName:
      // In a pattern the first part is a variable; in an import nothing is.
      for (Node at = parent.parent(); at; at = at.parent()) {
        if (at.is(Kind::CasePattern)) return parent.first_child() == identifier;
        if (!at.is(Kind::ClassPattern) && !at.is(Kind::UnionPattern) && !at.is(Kind::KeywordPattern)) break;
      }
      return parent.parent().is(Kind::Decorator) && parent.first_child() == identifier;
    default:
      return true;
  }
}

}  // namespace devsan::program
