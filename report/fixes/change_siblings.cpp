// Lines that move what lies beside the operand: they move the operand as well.

#include <algorithm>

#include "report/fixes/site.h"
#include "report/fixes/torch_calls.h"
#include "report/program/definitions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Definition;
using program::Field;
using program::Kind;
using program::Node;

namespace {

// The last attribute of the operand's name: "code" of `state.code`. Empty where it ends otherwise.
std::string last_attribute_of(const Operand& operand) {
  const std::size_t dot = operand.name.rfind('.');
  const std::string name = dot == std::string::npos ? "" : operand.name.substr(dot + 1);
  return name.find_first_of("[]() ") == std::string::npos ? name : "";
}

// The last key: "mask" of `batch['mask']`, "exp_avg" of "exp_avg of weight".
std::string last_key_of(const Operand& operand) {
  const std::string& name = operand.name;
  if (const std::size_t of = name.find(" of "); of != std::string::npos) return name.substr(0, of);
  for (const std::string_view quote : {"'", "\""}) {
    const std::string close = std::string(quote) + "]";
    const std::size_t open = name.rfind("[" + std::string(quote));
    if (open == std::string::npos || !name.ends_with(close)) continue;
    return name.substr(open + 2, name.size() - open - 2 - close.size());
  }
  return "";
}

// `self.a = self.a.to(d)`
bool moves_attribute(Node assignment) {
  const Node target = assignment.child(Field::Left);
  const CallParts move = program::call_parts(assignment.child(Field::Right));
  return assignment.is(Kind::Assignment) && target.is(Kind::Attribute) && move && is_move(move) &&
         move.receiver().text() == target.text();
}

bool stores_attribute(const Site& site, std::string_view name, Node class_definition) {
  return std::ranges::any_of(site.code.stores(name), [&](const Definition* one) {
    return program::class_of(one->statement) == class_definition;
  });
}

MaybeChange move_attribute_beside(const Site& site) {
  const Node assignment = site.statement().is(Kind::ExpressionStatement) ? site.statement().only_child() : Node();
  const std::string name = last_attribute_of(*site.moved);
  if (name.empty() || !moves_attribute(assignment)) return {};
  const Node target = assignment.child(Field::Left);
  const std::string object(target.child(Field::Object).text());
  const std::string other = object + "." + name;
  const std::string_view function = slice::body_of(assignment).text();
  const bool known = object == "self" && stores_attribute(site, name, program::class_of(assignment));
  if (!known || other == target.text() || function.find(other) != std::string_view::npos) return {};
  const CallParts move = program::call_parts(assignment.child(Field::Right));
  const std::string rest(move.call.text().substr(target.text().size()));
  const std::string code = other + " = " + other + rest;
  const auto edit = program::insert_statement_after(site.statement(), code);
  if (!edit) return {};
  return Change{{*edit}, "Move " + as_code(other) + " as well: " + as_code(code)};
}

// for name in ("a", "b"):  ->  for name in ("a", "b", "c"):
MaybeChange extend_list(const Site& site) {
  const Node loop = site.statement();
  const std::string key = last_key_of(*site.moved);
  const Node list = loop.is(Kind::ForStatement) ? program::without_parentheses(loop.child(Field::Right)) : Node();
  const std::vector<Node> names = list ? program::elements(list) : std::vector<Node>();
  if (key.empty() || names.empty()) return {};
  const bool others = std::ranges::all_of(names, [&](Node one) {
    const auto text = program::string_value(one);
    return text && *text != key;
  });
  const std::string_view body = loop.child(Field::Body).text();
  const bool moves = body.find(".to(") != std::string_view::npos || body.find(".cuda(") != std::string_view::npos;
  if (!others || !moves) return {};
  const std::uint32_t end = names.back().end_byte();
  return Change{{program::Edit{end, end, ", '" + key + "'"}}, "Move " + as_code(key) + " as well"};
}

}  // namespace

MaybeChange move_beside(const Site& site) {
  if (site.moved->number || site.moved->generator || site.moved->device_argument) return {};
  if (auto change = extend_list(site)) return change;
  return move_attribute_beside(site);
}

}  // namespace devsan::report::fixes
