// The operand where it is used: what is written in the line that fails.

#include <algorithm>
#include <array>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/site.h"
#include "report/fixes/torch_calls.h"
#include "report/program/definitions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"

namespace devsan::report::fixes {

using program::CallParts;
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

// Other entries of the same container in the statement.
std::vector<Node> entries_beside(Node operand) {
  std::vector<Node> all = {operand};
  const Node container = operand.is(Kind::Subscript) ? operand.child(Field::Value) : Node();
  if (!container.is(Kind::Identifier) || operand.children(Field::Subscript).size() != 1) return all;
  if (!program::integer_value(operand.child(Field::Subscript))) return all;
  for (const Node node : program::statement_of(operand).subtree()) {
    const bool entry = node.is(Kind::Subscript) && node != operand && is_read(node) &&
                       node.child(Field::Value).text() == container.text() &&
                       program::integer_value(node.child(Field::Subscript));
    if (entry) all.push_back(node);
  }
  return all;
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
  const std::string once = std::string(operand.text()) + " = " + std::string(operand.text()) + move_to(device);
  const bool simple = !site.statement().child(Field::Body) && !site.statement().child(Field::Consequence);
  if (operand.is(Kind::Identifier) && simple && !device.empty() && is_read_again(operand)) {
    if (const auto before = program::insert_statement_before(site.statement(), once)) {
      return Change{{*before}, "Move " + as_code(operand.text()) + " before it is used: " + as_code(once)};
    }
  }
  Change change;
  for (const Node one : entries_beside(operand)) {
    auto edit = device.empty() ? std::nullopt : program::append_to_expression(one, move_to(device));
    if (edit) change.edits.push_back(std::move(*edit));
  }
  if (change.edits.empty()) return {};
  change.text = "Move " + as_code(operand.text()) + " where it is used: " + as_code(move_to(device));
  return change;
}

}  // namespace devsan::report::fixes
