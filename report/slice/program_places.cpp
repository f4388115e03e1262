#include "report/slice/program_places.h"

#include <algorithm>

#include "report/program/expressions.h"
#include "report/program/flow.h"
#include "report/program/positions.h"
#include "report/slice/conditions.h"
#include "report/slice/torch_names.h"

namespace devsan::report::slice {

using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr double kDistance = 6;  // from any use

class Search {
 public:
  explicit Search(const Code& code) : code_(code) {}

  std::vector<Place> run() {
    for (const FileIndex* index : code_.files()) {
      if (code_.is_library(index->file())) continue;
      for (const Node call : index->all_calls()) visit(call);
      for (const Node with : index->with_statements()) visit_with(with);
    }
    for (const Definition* store : code_.stores("data")) {
      add(store->statement, Role::data_replaced, store->value);
      conditions(store->statement);
    }
    for (const std::string_view state : {"state", "exp_avg"}) {
      for (const Definition* entry : code_.entries(state)) add(entry->statement, Role::state_entered, entry->value);
    }
    return std::move(places_);
  }

 private:
  void add(Node node, Role role, Node value = {}) {
    places_.push_back({node, role, Aspect::device, Side::program, kDistance, value ? value : node});
  }

  void visit(Node call) {
    const std::string_view name = called_name(call);
    const program::CallParts parts = program::call_parts(call);
    if (sets_default_device(name)) {
      add(call, Role::default_device);
    } else if (registers_hook(name)) {
      add(call, Role::hook_registered);
      around(call);
    } else if (loads_state(name)) {
      add(call, Role::state_loaded);
      around(call);
    } else if (name == "remove" && parts.arguments.empty()) {
      add(call, Role::hook_removed);
    } else if (parts.receiver() && moves_object(name)) {
      add(call, Role::some_move);
      unused_result(call);
      around(call);
    } else if (name == "deepcopy") {
      add(call, Role::shared);
    } else if (is_optimizer(name)) {
      add(call, Role::optimizer_made);
    }
  }

  void visit_with(Node with) {
    const Node body = with.child(Field::Body);
    for (std::uint32_t index = with.index(); index < body.index(); ++index) {
      const Node node = with.file().node(index);
      if (node.is(Kind::Identifier) && node.text().find("device") != std::string_view::npos) {
        return add(with, Role::device_entered);
      }
    }
  }

  // `x = x.to(device)` behind which nothing reads x.
  void unused_result(Node call) {
    const Node assignment = call.parent();
    if (!assignment.is(Kind::Assignment)) return;
    const Node target = assignment.child(Field::Left);
    if (!target.is(Kind::Identifier)) return;
    const program::SourceFile& file = call.file();
    const program::Scope* binding = file.scopes().binding(target.text(), file.scopes().of(target));
    if (binding == nullptr) return;
    const Node body = body_of(call);
    const std::vector<Node> uses = file.definitions().uses(*binding, target.text());
    const bool read = std::ranges::any_of(
        uses, [&](Node use) { return use.begin_byte() >= assignment.end_byte() && body_of(use) == body; });
    if (!read) add(call, Role::moved_unused);
  }

  // What a move or the like depends on, in its function and where that is called.
  void around(Node call) {
    conditions(call);
    const Node function = body_of(call);
    if (!function.is(Kind::FunctionDefinition)) return;
    for (const Node caller : code_.calls(name_of_function(function))) {
      for (Node at = caller.parent(); at && !is_body(at); at = at.parent()) {
        if (at.is(Kind::IfStatement)) add(at, Role::move_guarded, at.child(Field::Condition));
      }
    }
  }

  void conditions(Node node) {
    for (const Condition& one : conditions_on(node)) add(one.statement, Role::move_guarded, one.condition);
    for (Node at = node.parent(); at && !is_body(at); at = at.parent()) {
      if (at.is(Kind::ForStatement)) listed(at);
    }
  }

  // `for name in self.names: … .to(device)`: what the loop goes over.
  void listed(Node loop) {
    add(loop, Role::move_looped, loop.child(Field::Right));
    const Node source = loop.child(Field::Right);
    for (const Node node : source.subtree()) {
      if (!node.is(Kind::Identifier) || !program::is_variable_name(node)) continue;
      for (const program::Reached& one : node.file().flow().reaching(node).definitions) {
        if (one.definition->kind != DefinitionKind::Assignment) continue;
        add(one.definition->statement, Role::move_looped, one.definition->value);
        if (!one.definition->value.is(Kind::Dictionary)) continue;
        for (const Node pair : one.definition->value.children()) add(pair, Role::move_looped);
      }
    }
  }

  const Code& code_;
  std::vector<Place> places_;
};

}  // namespace

std::vector<Place> program_places(const Code& code) {
  return Search(code).run();
}

}  // namespace devsan::report::slice
