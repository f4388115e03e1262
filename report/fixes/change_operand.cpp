// The operand where it is used: what is written in the line that fails.

#include <algorithm>
#include <array>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/site.h"
#include "report/fixes/torch_calls.h"
#include "report/program/definitions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;

namespace {

bool is_value(Node node) {
  constexpr std::array kKinds{Kind::Identifier,    Kind::Attribute,         Kind::Subscript,
                              Kind::Call,          Kind::BinaryOperator,    Kind::ParenthesizedExpression,
                              Kind::UnaryOperator, Kind::ComparisonOperator};
  return std::ranges::find(kKinds, node.kind()) != kKinds.end();
}

// It is read there: no target, no name of an attribute, keyword or function.
bool is_read(Node node) {
  const Node parent = node.parent();
  if (parent.is(Kind::Assignment)) return node.role() != Field::Left;
  if (parent.is(Kind::AugmentedAssignment)) return node.role() == Field::Right;
  if (parent.is(Kind::Attribute) || parent.is(Kind::KeywordArgument)) {
    return node.role() != Field::Attribute && node.role() != Field::Name;
  }
  return node.role() != Field::Function;
}

// Of that text in the node, the outermost.
Node written_in(Node within, std::string_view text) {
  for (const Node node : within.subtree()) {
    if (node.text() == text && is_value(node) && is_read(node)) return node;
  }
  return {};
}

Node operand_in(const Site& site) {
  const Node exact = site.code.node_at(*site.finding.where);
  for (const Node within : {exact, site.statement()}) {
    if (!within) continue;
    for (const std::string* text : {&site.moved->text, &site.moved->name}) {
      if (text->empty()) continue;
      const Node found = written_in(within, *text);
      if (found.parent().is(Kind::ParenthesizedExpression)) return found.parent();
      if (found) return found;
    }
  }
  return {};
}

// The function reads the name again, in the statement or behind it.
bool is_read_again(Node name) {
  const program::SourceFile& file = name.file();
  const program::Scope* binding = file.scopes().binding(name.text(), file.scopes().of(name));
  if (binding == nullptr || binding->node != slice::body_of(name)) return false;
  const Node statement = program::statement_of(name);
  const std::vector<Node> uses = file.definitions().uses(*binding, name.text());
  return std::ranges::any_of(uses, [&](Node use) { return use != name && use.begin_byte() >= statement.begin_byte(); });
}

// What a module keeps, and was not moved with it, follows what it meets; what was moved there says where the module is.
bool is_kept(const Operand& operand, const Operand& meeting) {
  const bool part = operand.is == trace::NameKind::buffer || operand.is == trace::NameKind::attribute;
  if (!part || !operand.name.starts_with("self.") || operand.on_cpu()) return false;
  const bool passing = meeting.is == trace::NameKind::local || meeting.is == trace::NameKind::temporary;
  return passing && (operand.is == trace::NameKind::attribute || !meeting.on_cpu());
}

// The other operand is the one to move, where that is kept from earlier calls.
Site with_kept_moved(const Site& site) {
  Site swapped = site;
  const bool kept = site.wanted != nullptr && is_kept(*site.wanted, *site.moved) && !site.is_written(*site.wanted);
  if (!kept) return swapped;
  std::swap(swapped.moved, swapped.wanted);
  swapped.device = swapped.wanted->device;
  return swapped;
}

// The one definition that gives the name its value; null where there are several.
const Definition* only_definition(Node name) {
  const auto found = name.file().flow().reaching(name).definitions;
  return found.size() == 1 ? found.front().definition : nullptr;
}

// What a call gives the parameter.
Node given_as(const Definition& parameter, Node call) {
  const program::Scope& scope = *parameter.scope;
  std::size_t place = 0;
  while (place < scope.parameters.size() && scope.parameters[place].name != parameter.variable.name) ++place;
  if (program::class_of_method(scope.node) && place > 0) --place;
  return program::call_parts(call).argument(parameter.variable.name, place);
}

constexpr int kMostCalls = 3;  // that hand both values on

// Parts of one value that is unpacked, attributes of one object, or parameters that a call gives such values.
bool come_together(const Site& site, Node one, Node other, int depth) {
  if (one.is(Kind::Attribute) && other.is(Kind::Attribute)) {
    return one.child(Field::Object).text() == other.child(Field::Object).text();
  }
  if (!one.is(Kind::Identifier) || !other.is(Kind::Identifier) || depth > kMostCalls) return false;
  const Definition* first = only_definition(one);
  const Definition* second = only_definition(other);
  if (first == nullptr || second == nullptr || first == second || first->kind != second->kind) return false;
  if (first->kind == DefinitionKind::Assignment) {
    return first->statement == second->statement && !first->path.empty() && !second->path.empty();
  }
  if (first->kind != DefinitionKind::Parameter || first->scope != second->scope) return false;
  return std::ranges::any_of(site.code.calls_that_ran(first->scope->node), [&](Node call) {
    const Node given = given_as(*first, call);
    const Node beside = given_as(*second, call);
    return given && beside && come_together(site, given, beside, depth + 1);
  });
}

// Another entry of the same list.
bool is_entry_beside(Node node, Node operand) {
  if (!operand.is(Kind::Subscript) || !node.is(Kind::Subscript)) return false;
  const Node container = operand.child(Field::Value);
  return container.is(Kind::Identifier) && node.child(Field::Value).text() == container.text() &&
         operand.children(Field::Subscript).size() == 1 && program::integer_value(operand.child(Field::Subscript)) &&
         program::integer_value(node.child(Field::Subscript));
}

// Another name that stands to an operator as the operand does, and came with it.
bool is_name_beside(const Site& site, Node node, Node operand) {
  const Node parent = operand.parent();
  if (!operand.is(Kind::Identifier) || !node.is(Kind::Identifier) || node.text() == operand.text()) return false;
  const bool alike =
      parent.is(Kind::BinaryOperator) && node.parent().is(Kind::BinaryOperator) && node.role() == operand.role() &&
      program::operations(parent).front().operation == program::operations(node.parent()).front().operation;
  const bool there = std::ranges::any_of(site.finding.operands, [&](const Operand& one) {
    return one.device == site.device && (one.name == node.text() || one.text == node.text());
  });
  return alike && !there && come_together(site, operand, node, 0);
}

// The operand, and what stands beside it in the statement and came the same way.
std::vector<Node> with_values_beside(const Site& site, Node operand) {
  std::vector<Node> all = {operand};
  for (const Node node : program::statement_of(operand).subtree()) {
    if (node == operand || !is_value(node) || !is_read(node)) continue;
    if (is_entry_beside(node, operand) || is_name_beside(site, node, operand)) all.push_back(node);
  }
  return all;
}

// Each name once.
std::string moved_before(const std::vector<Node>& nodes, const std::string& device) {
  std::vector<std::string> names;
  for (const Node node : nodes) {
    if (std::ranges::find(names, node.text()) == names.end()) names.emplace_back(node.text());
  }
  return moved_names(names, device);
}

}  // namespace

MaybeChange move_operand(const Site& given) {
  if (!given.finding.where || given.failing_statement() != given.statement()) return {};
  const Site site = with_kept_moved(given);
  const Operand& moved = *site.moved;
  if (site.is_written(moved) || moved.number || moved.generator || moved.device_argument) return {};
  const Node operand = operand_in(site);
  if (!operand || is_move(program::call_parts(operand))) return {};
  const std::string device = device_at_hand(site, operand, operand);
  const std::vector<Node> beside = with_values_beside(site, operand);
  const bool simple = !site.statement().child(Field::Body) && !site.statement().child(Field::Consequence);
  if (operand.is(Kind::Identifier) && simple && !device.empty() && is_read_again(operand)) {
    const std::string once = moved_before(beside, device);
    if (const auto before = program::insert_statement_before(site.statement(), once)) {
      return Change{{*before}, "Move " + as_code(operand.text()) + " before it is used: " + as_code(once)};
    }
  }
  Change change;
  for (const Node one : beside) {
    auto edit = device.empty() ? std::nullopt : program::append_to_expression(one, move_to(device));
    if (edit) change.edits.push_back(std::move(*edit));
  }
  if (change.edits.empty()) return {};
  change.text = "Move " + as_code(operand.text()) + " where it is used: " + as_code(move_to(device));
  return change;
}

}  // namespace devsan::report::fixes
