// Names, what is bound to them, and what containers of a name are filled with.

#include <algorithm>
#include <filesystem>
#include <set>

#include "report/program/flow.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/slice/conditions.h"
#include "report/slice/slicer.h"
#include "report/slice/torch_names.h"

namespace devsan::report::slice {

using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr std::size_t kMostDefinitions = 6;  // of one name at one place
constexpr int kMostConditions = 2;           // around one statement
constexpr int kMostExits = 3;                // before one statement

Role role_of(const Definition& definition) {
  if (definition.kind == DefinitionKind::LoopTarget || definition.kind == DefinitionKind::ComprehensionTarget) {
    return Role::looped_over;
  }
  if (definition.is_attribute_store()) return Role::stored;
  return definition.is_subscript_store() ? Role::entered : Role::bound;
}

// What one element of `zip(a, b)` or `enumerate(a)` at the place that is unpacked comes from; none where that is a
// number.
Node iterated(Node iterable, std::vector<int> path) {
  const program::CallParts parts = program::call_parts(iterable);
  if (!parts || path.empty()) return iterable;
  const std::string_view called = called_name(iterable);
  const auto place = static_cast<std::size_t>(path.front());
  if (called == "zip" && path.front() >= 0 && place < parts.positional.size()) return parts.positional[place];
  if (called != "enumerate" || parts.positional.empty()) return iterable;
  if (path.front() == 0) return {};
  path.erase(path.begin());
  return iterated(parts.positional.front(), path);
}

// The part of a display that a path leads to, as far as the source tells.
Node unpacked(Node value, const std::vector<int>& path) {
  for (const int index : path) {
    const std::vector<Node> parts = program::elements(value);
    const auto place = static_cast<std::size_t>(index);
    const bool display = value.is(Kind::Tuple) || value.is(Kind::List) || value.is(Kind::ExpressionList);
    if (!display || index < 0 || place >= parts.size()) break;
    value = parts[place];
  }
  return value;
}

bool lacks_key(Node value, const std::string& key) {
  if (key.empty() || !value.is(Kind::Dictionary)) return false;
  const std::vector<program::Entry> entries = program::entries(value);
  return !entries.empty() && std::ranges::none_of(entries, [&](const program::Entry& entry) {
    const auto known = entry.key ? program::string_value(entry.key) : std::nullopt;
    return !known || *known == key;
  });
}

// `container["other"] = …` where another key is asked for.
bool is_for_other_key(Node subscript, const std::string& key) {
  if (key.empty() || !subscript.is(Kind::Subscript)) return false;
  const std::vector<Node> keys = subscript.children(Field::Subscript);
  const auto known = keys.size() == 1 ? program::string_value(keys.front()) : std::nullopt;
  return known && *known != key;
}

}  // namespace

void Slicer::name(Node node, double distance, Aspect aspect) {
  program::Reaching reaching = node.file().flow().reaching(node);
  leave_those_in_history(reaching.definitions);
  std::size_t count = 0;
  for (const program::Reached& one : reaching.definitions) {
    if (count == kMostDefinitions) break;
    reached(*one.definition, distance + 0.3 * static_cast<double>(count++), aspect);
  }
  if (count == 0) bound_elsewhere(node, distance + 1, aspect);
  done_with(node, distance, aspect);
}

// Of several definitions the one that computed the value is the one that counts: the others were overwritten, or did
// not run.
void Slicer::leave_those_in_history(std::vector<program::Reached>& definitions) const {
  const auto counts = [&](const program::Reached& one) {
    return one.definition->kind == DefinitionKind::Assignment && is_in_history(one.definition->statement);
  };
  if (definitions.size() < 2 || std::ranges::none_of(definitions, counts)) return;
  std::erase_if(definitions, [&](const program::Reached& one) {
    return one.definition->kind == DefinitionKind::Assignment && one.definition->is_name() && !counts(one);
  });
}

bool Slicer::is_in_history(Node statement) const {
  const program::Range range = statement.range();
  return std::ranges::any_of(operand_.lineage, [&](const LineageStep& step) {
    return step.at.file == statement.file().path() && range.line <= step.at.line && step.at.line <= range.end_line;
  });
}

// A name of a class's body, of another cell of the notebook, or of what `import *` brought.
void Slicer::bound_elsewhere(Node node, double distance, Aspect aspect) {
  for (const Definition* one : code_.stores(node.text())) {
    if (one->is_name()) defined(*one, distance, aspect);
  }
  for (const FileIndex* index : code_.files()) {
    const program::SourceFile& file = index->file();
    if (&file == &node.file()) continue;
    for (const Definition* one : file.definitions().of_name(file.scopes().module(), node.text())) {
      if (one->kind == DefinitionKind::Assignment) defined(*one, distance, aspect);
    }
  }
}

void Slicer::reached(const Definition& definition, double distance, Aspect aspect) {
  switch (definition.kind) {
    case DefinitionKind::Parameter:
      return parameter(definition, distance, aspect);
    case DefinitionKind::Function:
      return returns(definition.statement, distance + 1, aspect);
    case DefinitionKind::Import:
      return imported(definition, distance, aspect);
    case DefinitionKind::Assignment:
    case DefinitionKind::Augmented:
    case DefinitionKind::SetAttribute:
    case DefinitionKind::Walrus:
    case DefinitionKind::LoopTarget:
    case DefinitionKind::ComprehensionTarget:
    case DefinitionKind::WithTarget:
    case DefinitionKind::MatchCapture:
      return defined(definition, distance, aspect);
    default:
      return;
  }
}

void Slicer::defined(const Definition& definition, double distance, Aspect aspect) {
  Node value = definition.value;
  if (!value) return;
  Part part = part_;
  std::vector<int> path = definition.path;
  const Role role = role_of(definition);
  if (role == Role::looped_over) {
    const Node source = iterated(value, path);
    if (!source) return;
    if (source != value) path.clear();
    value = source;
  }
  if (!path.empty() && value.is(Kind::Call) && role != Role::looped_over) part = {"", path.front()};
  value = unpacked(value, path);
  const bool augmented = definition.kind == DefinitionKind::Augmented;
  if (!augmented && lacks_key(value, part.key)) return;
  add(definition.statement, role, distance, aspect, value);
  if (value.line() != definition.statement.line() && value != definition.value) add(value, role, distance, aspect);
  if (definition.is_subscript_store()) {
    cache_key(definition, distance, aspect);
    part = {};
  }
  push(value, distance + 1, aspect, part);
  if (augmented && definition.is_name()) push(definition.target, distance + 1, aspect, part);
  guards(definition.statement, distance + 0.5, aspect);
}

void Slicer::imported(const Definition& definition, double distance, Aspect aspect) {
  const std::size_t dot = definition.origin.rfind('.');
  if (dot == std::string::npos) return;
  const std::string name = definition.origin.substr(dot + 1);
  const std::string module = definition.origin.substr(0, dot);
  const std::string stem = module.substr(module.rfind('.') + 1);
  for (const FileIndex* index : code_.files()) {
    const std::filesystem::path path = index->file().path();
    if (path.stem() != stem && path.parent_path().filename() != stem) continue;
    const program::SourceFile& file = index->file();
    for (const Definition* one : file.definitions().of_name(file.scopes().module(), name)) {
      if (one->kind == DefinitionKind::Assignment) defined(*one, distance + 0.5, aspect);
    }
  }
}

// What the function that uses a variable does with it besides: it fills or moves it, or lets a function change it.
void Slicer::done_with(Node use, double distance, Aspect aspect) {
  const Node body = body_of(use);
  const std::string_view variable = use.text();
  if (!is_nearer("variable", variable, body, aspect, distance)) return;
  const FileIndex* index = code_.file(use.file().path());
  if (index == nullptr) return;
  const program::Scopes& scopes = use.file().scopes();
  const program::Scope* binding = scopes.binding(variable, scopes.of(use));
  const auto is_same = [&](Node container) {
    return container.is(Kind::Identifier) && scopes.binding(variable, scopes.of(container)) == binding;
  };
  Definitions entries = index->entries(variable);
  std::erase_if(entries, [&](const Definition* one) { return !is_same(container_of(one->target)); });
  Nodes fills = index->fills(variable);
  std::erase_if(fills, [&](Node call) { return !is_same(container_of(call)); });
  entered(entries, distance + 0.5, aspect);
  filled(fills, distance + 0.5, aspect);
  for (const Node mention : index->mentions(variable)) {
    if (!mention.is(Kind::Identifier) || body_of(mention) != body) continue;
    const Node member = mention.parent();
    const Node call = member.is(Kind::Attribute) && mention.role() == Field::Object ? member.parent() : Node();
    if (call.is(Kind::Call) && member.role() == Field::Function && moves_object(last_name(member))) {
      const Role dropped = aspect == Aspect::module ? Role::object_moved : Role::result_dropped;
      add(call, is_dropped(call) ? dropped : Role::moved_apart, distance + 1, aspect);
      device_arguments(program::call_parts(call), distance + 1);
      continue;
    }
    const Node arguments = member.is(Kind::ListSplat) ? member.parent() : member;
    const Node given = arguments.parent();
    if (arguments.is(Kind::ArgumentList) && is_dropped(given)) {
      const Node callee = given.child(Field::Function);
      Nodes functions =
          callee.is(Kind::Identifier) ? code_.called_by_name(callee) : code_.functions(called_name(given));
      std::erase_if(functions, [](Node one) { return !one.is(Kind::FunctionDefinition); });
      if (!functions.empty()) add(given, Role::called_for_effect, distance + 1, aspect);
      for (const Node function : functions) returns(function, distance + 2, aspect);
    }
    if (aspect == Aspect::module && mention != use && arguments.is(Kind::ArgumentList)) {
      add(given, Role::shared, distance + 1.5, aspect);
    }
  }
}

void Slicer::entered(const Definitions& entries, double distance, Aspect aspect) {
  for (const Definition* one : entries) {
    if (!is_for_other_key(one->target, part_.key)) defined(*one, distance + 0.5, aspect);
  }
}

void Slicer::filled(const Nodes& calls, double distance, Aspect aspect) {
  for (const Node call : calls) {
    const program::CallParts parts = program::call_parts(call);
    if (is_for_other_key(parts.receiver(), part_.key)) continue;
    const bool keywords = std::ranges::any_of(
        parts.arguments, [](const auto& one) { return one.kind == program::Argument::Kind::Keyword; });
    const bool other = parts.method() == "update" && !part_.key.empty() && keywords && !parts.has_double_star &&
                       !parts.keyword(part_.key);
    if (other) continue;
    add(call, Role::filled, distance + 0.5, aspect);
    for (const program::Argument& argument : parts.arguments) push(argument.value, distance + 1.5, aspect);
    guards(program::statement_of(call), distance + 1, aspect);
  }
}

// `cache[key] = value`: which values are taken for equal depends on the key.
void Slicer::cache_key(const Definition& definition, double distance, Aspect aspect) {
  for (const Node key : definition.target.children(Field::Subscript)) {
    if (!key.is(Kind::Identifier)) continue;
    for (const program::Reached& one : key.file().flow().reaching(key).definitions) {
      if (one.definition->kind == DefinitionKind::Assignment) {
        add(one.definition->statement, Role::guard_set, distance + 0.5, aspect, one.definition->value);
      }
    }
  }
}

void Slicer::conditions_of(Node node, double distance, Aspect aspect) {
  guards(program::statement_of(node), distance, aspect);
}

void Slicer::guards(Node statement, double distance, Aspect aspect) {
  int around = 0;
  int before = 0;
  for (const Condition& one : conditions_on(statement)) {
    int& count = one.exit ? before : around;
    if (count == (one.exit ? kMostExits : kMostConditions)) continue;
    add(one.statement, Role::guarded, distance + count++, aspect, one.condition);
    if (!one.exit) guard_variables(one.condition, statement, distance + 0.5, aspect);
  }
}

void Slicer::guard_variables(Node condition, Node statement, double distance, Aspect aspect) {
  const program::SourceFile& file = condition.file();
  std::set<std::string_view> done;
  for (const Node node : condition.subtree()) {
    if (!node.is(Kind::Identifier) || !program::is_variable_name(node) || !done.insert(node.text()).second) continue;
    for (const program::Reached& one : file.flow().reaching(node).definitions) {
      const Definition& definition = *one.definition;
      if (definition.kind != DefinitionKind::Assignment || definition.statement.begin_byte() > statement.begin_byte()) {
        continue;
      }
      add(definition.statement, Role::guard_set, distance, aspect, definition.value);
    }
  }
}

}  // namespace devsan::report::slice
