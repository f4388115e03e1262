// Moves and devices that the line has: a move to elsewhere, one whose result is dropped, a device that is written.

#include <algorithm>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/device_value.h"
#include "report/fixes/site.h"
#include "report/fixes/tensors.h"
#include "report/fixes/torch_calls.h"
#include "report/program/definitions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/source_file.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Kind;
using program::Node;
using slice::Aspect;
using slice::Place;
using slice::Role;

namespace {

// Something reads the variable behind the statement, in its function.
bool is_read_behind(Node variable, Node statement) {
  const Node root = program::root_of(variable);
  const program::SourceFile& file = root.file();
  const program::Scope* binding = file.scopes().binding(root.text(), file.scopes().of(root));
  if (binding == nullptr) return false;
  if (variable.is(Kind::Attribute)) return true;
  const std::vector<Node> uses = file.definitions().uses(*binding, root.text());
  return std::ranges::any_of(uses, [&](Node use) { return use.begin_byte() >= statement.end_byte(); });
}

// `x.cpu().numpy()`: the host is meant.
bool is_for_host(Node call) {
  constexpr auto kOnHost = std::to_array<std::string_view>({"numpy", "tolist", "item"});
  const Node parent = call.parent();
  return parent.is(Kind::Attribute) && std::ranges::find(kOnHost, slice::last_name(parent)) != kOnHost.end();
}

// The step of the history that this move is, with that before it.
const LineageStep* step_before(const Site& site) {
  const auto& steps = site.moved->lineage;
  for (std::size_t k = 0; k + 1 < steps.size(); ++k) {
    if (steps[k].how == trace::How::moved && site.is_at(steps[k].at)) return &steps[k + 1];
  }
  return nullptr;
}

// The move, and those of what stands beside it in a tuple or list.
std::vector<CallParts> with_twins(const CallParts& call) {
  std::vector<CallParts> all = {call};
  const Node display = call.call.parent();
  if (!display.is(Kind::ExpressionList) && !display.is(Kind::Tuple) && !display.is(Kind::List)) return all;
  for (const Node other : program::elements(display)) {
    const CallParts parts = program::call_parts(other);
    if (other == call.call || !parts || parts.method() != call.method()) continue;
    if (device_of_move(parts).text() == device_of_move(call).text()) all.push_back(parts);
  }
  return all;
}

// Its line goes, where the block has others; none where other code is on it.
std::optional<program::Edit> without_line(Node statement) {
  const program::SourceFile& file = statement.file();
  const program::Range range = statement.range();
  const std::uint32_t begin = file.line_start(range.line);
  const std::string_view before = file.text().substr(begin, statement.begin_byte() - begin);
  const bool alone = before.find_first_not_of(" \t") == std::string_view::npos;
  if (!alone || range.end_line >= file.line_count() || statement.parent().children().size() < 2) return std::nullopt;
  return program::Edit{begin, file.line_start(range.end_line + 1), ""};
}

MaybeChange drop_move(const Site& site, const CallParts& call) {
  const LineageStep* before = step_before(site);
  if (before == nullptr || before->device != site.device || call.arguments.size() > 1) return {};
  if (!call.arguments.empty() && !device_of_move(call)) return {};
  Change change;
  change.text = "Leave out the move " + as_code(call.call.text().substr(call.receiver().text().size()));
  if (call.call.parent().is(Kind::ExpressionStatement)) {
    auto edit = without_line(call.call.parent());
    if (!edit) return {};
    change.edits.push_back(std::move(*edit));
    return change;
  }
  // What follows a variable may have come from anywhere.
  const Node given = device_of_move(call);
  const bool written = !given || says_device(given);
  for (const CallParts& one : written ? with_twins(call) : std::vector<CallParts>{call}) {
    auto edit = program::replace_expression(one.call, one.receiver().text());
    if (edit) change.edits.push_back(std::move(*edit));
  }
  return change.edits.empty() ? MaybeChange() : change;
}

MaybeChange redirect(const Site& site, const CallParts& call, const Place& place) {
  if (!is_move(call) || call.has_star || call.has_double_star || is_for_host(call.call)) return {};
  const Node given = device_of_move(call);
  if (call.method() == "to" && !given) return {};
  const auto said = call.method() == "cpu" ? "cpu" : given ? device_value(given, site.code) : "cuda";
  if (said && site.is_there(*said) && call.method() != "cuda") return {};
  const bool decided = place.role == Role::history_moved;
  if (!said && !decided && !(site.is_on_way(place) && slice::body_of(call.call) == site.failing_function())) return {};
  if (auto dropped = drop_move(site, call)) return dropped;
  const std::string device = device_at_hand(site, call.call, call.receiver(), given.text());
  // A variable, and another tensor's device, stand for more than the one device.
  if (device.empty() || (given && !says_device(given) && device.starts_with('\''))) return {};
  Change change;
  for (const CallParts& one : with_twins(call)) {
    const Node to = device_of_move(one);
    auto edit = one.method() == "to"
                    ? program::replace_expression(to, device)
                    : program::replace_expression(one.call, std::string(one.receiver().text()) + move_to(device));
    if (edit) change.edits.push_back(std::move(*edit));
  }
  if (change.edits.empty()) return {};
  change.text = "Move " + as_code(call.receiver().text()) + " to the other device: " + as_code(move_to(device));
  return change;
}

// `f(torch.device(name))`, where another variable says the wanted device.
MaybeChange other_argument(const Site& site) {
  for (const Place* place : site.places) {
    if (place->role != Role::argument || place->aspect != Aspect::device || site.device == "cpu") continue;
    const auto said = device_value(place->value, site.code);
    if (!said || site.is_there(*said) || !is_same_device(*said, site.moved->device)) continue;
    const std::string device = device_at_hand(site, place->node, {}, place->value.text());
    const auto edit = program::replace_expression(place->value, device);
    if (edit && !device.starts_with('\'')) return Change{{*edit}, "Hand on the other device: " + as_code(device)};
  }
  return {};
}

bool is_move_role(Role role) {
  return role == Role::moved || role == Role::history_moved || role == Role::object_moved || role == Role::some_move;
}

}  // namespace

MaybeChange take_result(const Site& site) {
  if (!site.statement().is(Kind::ExpressionStatement)) return {};
  const CallParts call = program::call_parts(site.statement().only_child());
  if (!call || !is_move(call) || !program::variable_of(call.receiver())) return {};
  // A module moves in place.
  const bool part = site.moved->is == trace::NameKind::parameter || site.moved->is == trace::NameKind::buffer;
  if (part || is_no_tensor(call.receiver(), site.code)) return {};
  const std::string_view name = call.receiver().text();
  const bool tensor =
      name == site.moved->name || name == site.moved->text || is_used_as_tensor(site.candidate.function, name);
  const bool dropped = std::ranges::any_of(site.places, [&](const Place* one) {
    const bool sure = tensor || one->leads_to_origin == true;
    return one->role == Role::result_dropped && one->aspect == Aspect::value && one->node == call.call && sure;
  });
  if (!dropped || !is_read_behind(call.receiver(), site.statement())) return {};
  const std::string subject(call.receiver().text());
  const auto edit = program::replace_expression(call.call, subject + " = " + std::string(call.call.text()));
  const program::Edit assigned{call.call.begin_byte(), call.call.begin_byte(), subject + " = "};
  return Change{{edit ? *edit : assigned}, "Take the result of the move: " + as_code(subject + " = …")};
}

MaybeChange correct_move(const Site& site) {
  for (const Place* place : site.places) {
    if (!is_move_role(place->role) || place->leads_to_origin == false) continue;
    const CallParts call = program::call_parts(program::without_parentheses(place->node));
    if (!call) continue;
    if (auto change = redirect(site, call, *place)) return change;
  }
  return {};
}

MaybeChange correct_device(const Site& site) {
  for (const Place* place : site.places) {
    if (place->role != Role::device_written && place->role != Role::default_used) continue;
    const Node node = place->role == Role::default_used ? place->node : place->value;
    const auto said = says_device(node) ? device_value(node, site.code) : std::nullopt;
    if (!said || site.is_there(*said) || !is_same_device(*said, site.moved->device)) continue;
    if (site.device == "cpu") continue;  // who writes an accelerator there means one
    const std::string device = device_at_hand(site, node);
    const CallParts call = program::call_parts(node);
    const bool literal = device.starts_with('\'');
    const auto edit = program::replace_expression(
        node, call && literal ? std::string(call.callee.text()) + "(" + device + ")" : device);
    if (edit) return Change{{*edit}, "Name the other device: " + as_code(device)};
  }
  return other_argument(site);
}

}  // namespace devsan::report::fixes
