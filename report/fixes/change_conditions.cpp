// Conditions that keep a value from an earlier call: they ask where it is, too.

#include <algorithm>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/site.h"
#include "report/program/definitions.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::Definition;
using program::Field;
using program::Kind;
using program::Node;
using slice::Role;

namespace {

bool mentions_part(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Stores to attributes that become the operand, in the code of the function.
std::vector<const Definition*> stores_of_operand(const Site& site, Node function) {
  std::vector<const Definition*> found;
  for (const Definition& one : site.file().definitions().all()) {
    if (!one.is_attribute_store() || slice::body_of(one.statement) != function || !one.value) continue;
    const std::string name = "." + std::string(slice::last_name(one.target));
    const bool operand = mentions_part(site.moved->name, name) || mentions_part(site.moved->text, name);
    if (operand && one.target.is(Kind::Attribute)) found.push_back(&one);
  }
  return found;
}

// The condition lets the function end before the statements behind it.
bool returns_early(Node branch) {
  const std::vector<Node> statements = branch.children();
  return !statements.empty() && statements.back().is(Kind::ReturnStatement);
}

// A device that what is stored follows, so that asking for it changes what is kept.
std::string device_followed(const Site& site, Node code, std::string_view kept) {
  for (std::string& device : devices_at_hand(site, site.statement())) {
    const bool literal = device.starts_with('\'');
    const bool own = device == std::string(kept) + ".device";
    const program::Subtree nodes = code.subtree();
    const bool followed = std::ranges::any_of(nodes.begin(), nodes.end(), [&](Node one) {
      return (one.is(Kind::Identifier) || one.is(Kind::Attribute)) && one.text() == device;
    });
    if (!literal && !own && followed) return std::move(device);
  }
  return "";
}

std::string as_device(const std::string& device) {
  return device.ends_with(".device") ? device : "torch.device(" + device + ")";
}

}  // namespace

MaybeChange ask_device(const Site& site) {
  const Node statement = site.statement();
  if (!statement.is(Kind::IfStatement) || (!site.has(Role::guarded) && !site.has(Role::chosen))) return {};
  const Node condition = statement.child(Field::Condition);
  const Node branch = statement.child(Field::Consequence);
  if (mentions_part(condition.text(), "device")) return {};
  for (const Definition* store : stores_of_operand(site, slice::body_of(statement))) {
    const bool within = branch.contains(store->statement);
    const bool behind = store->statement.begin_byte() > statement.end_byte() && returns_early(branch);
    if (!within && !behind) continue;
    const std::string kept(store->target.text());
    const Node code = within ? branch : slice::body_of(statement).child(Field::Body);
    const std::string device = device_followed(site, code, kept);
    if (device.empty() || (!device.ends_with(".device") && !imports(site.file(), "torch"))) continue;
    const std::string test = kept + ".device " + (within ? "!= " : "== ") + as_device(device);
    const bool loose = condition.is(Kind::ConditionalExpression) || condition.is(Kind::Lambda) ||
                       (behind && condition.is(Kind::BooleanOperator));
    const std::string asked = loose ? "(" + std::string(condition.text()) + ")" : std::string(condition.text());
    const auto edit = program::replace_expression(condition, asked + (within ? " or " : " and ") + test);
    if (edit) return Change{{*edit}, "Ask where " + as_code(kept) + " is: " + as_code(test)};
  }
  return {};
}

}  // namespace devsan::report::fixes
