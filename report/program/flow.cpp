#include "report/program/flow.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "report/program/source_file.h"

namespace devsan::program {
namespace {

constexpr std::uint32_t kAtTheEnd = std::numeric_limits<std::uint32_t>::max();

// Where in its vertex a definition happens: a target gets its value last, a walrus in the midst of the expression.
std::uint32_t moment(const Definition& definition) {
  const bool amidst = definition.kind == DefinitionKind::Walrus || definition.kind == DefinitionKind::SetAttribute;
  return amidst ? definition.statement.end_byte() : kAtTheEnd;
}

// Whose code the node is part of when it runs.
const Scope& running_scope(const Scope& scope) {
  const Scope* at = &scope;
  while (at->kind == ScopeKind::Comprehension || at->kind == ScopeKind::TypeParameters) at = at->parent;
  return *at;
}

}  // namespace

struct Flow::Course {
  explicit Course(const Scope& scope) : graph(scope), definitions(graph.vertices().size()) {}
  FlowGraph graph;
  std::vector<std::vector<const Definition*>> definitions;  // by vertex, in the order in which they happen
};

struct Flow::Search {
  Variable variable;
  Node place;
  const Scope* binding = nullptr;
  bool parts = false;  // of stores to parts alone
  Reaching found;
  std::vector<const Definition*> stored_parts;
  std::vector<bool> seen;  // vertices
  std::deque<std::uint32_t> open;
  bool entry = false;

  void add(const Definition& definition, Overlap how) {
    if (how == Overlap::Part) {
      stored_parts.push_back(&definition);
    } else if (definition.kind != DefinitionKind::Delete) {
      const auto same = [&definition](const Reached& each) { return each.definition == &definition; };
      const bool known = std::any_of(found.definitions.begin(), found.definitions.end(), same);
      if (!known) found.definitions.push_back({&definition, how});
    }
  }
};

Flow::Flow(const SourceFile& file, const Scopes& scopes, const Definitions& definitions)
    : file_(file), scopes_(scopes), definitions_(definitions) {}

Flow::~Flow() = default;

const Flow::Course& Flow::course(const Scope& scope) const {
  std::unique_ptr<Course>& made = courses_[scope.id];
  if (made) return *made;
  made = std::make_unique<Course>(scope);
  for (const Definition* definition : definitions_.in(scope)) {
    if (definition->kind == DefinitionKind::Declaration) continue;
    if (definition->kind == DefinitionKind::Parameter) {
      made->definitions[FlowGraph::kEntry].push_back(definition);
      continue;
    }
    for (const std::uint32_t vertex : made->graph.vertices_with(definition->target)) {
      made->definitions[vertex].push_back(definition);
    }
  }
  for (auto& at_vertex : made->definitions) {
    std::stable_sort(at_vertex.begin(), at_vertex.end(),
                     [](const Definition* one, const Definition* other) { return moment(*one) < moment(*other); });
  }
  return *made;
}

const FlowGraph& Flow::graph(const Scope& scope) const {
  return course(scope).graph;
}

// The definitions of one vertex, from the last; where none decides the variable for sure, what may run before follows.
void Flow::visit(Search& search, const Course& course, std::uint32_t vertex, std::uint32_t until) const {
  ++steps_;
  const auto& here = course.definitions[vertex];
  for (auto at = here.rbegin(); at != here.rend(); ++at) {
    const Definition& definition = **at;
    if (until != kAtTheEnd && moment(definition) > until) continue;
    const Overlap how = overlap(definition.variable, search.variable);
    if (how == Overlap::None) continue;
    search.add(definition, how);
    if (how == Overlap::Whole && definition.certain) return;
  }
  if (vertex == FlowGraph::kEntry) {
    search.entry = true;
    return;
  }
  const auto& before = course.graph.vertices()[vertex].before;
  for (auto at = before.rbegin(); at != before.rend(); ++at) {
    if (search.seen[*at]) continue;
    search.seen[*at] = true;
    search.open.push_back(*at);
  }
}

void Flow::search(Search& search, const Course& course) const {
  search.entry = false;
  search.seen.assign(course.graph.vertices().size(), false);
  search.open.clear();
  const std::vector<std::uint32_t> starts = course.graph.vertices_with(search.place);
  for (const std::uint32_t vertex : starts) visit(search, course, vertex, search.place.begin_byte());
  while (!search.open.empty()) {
    const std::uint32_t vertex = search.open.front();
    search.open.pop_front();
    visit(search, course, vertex, kAtTheEnd);
  }
  if (!starts.empty()) return;
  // The place is in no statement that was understood: everything may have happened.
  search.entry = true;
  for (const auto& here : course.definitions) {
    for (const Definition* definition : here) {
      const Overlap how = overlap(definition->variable, search.variable);
      if (how != Overlap::None) search.add(*definition, how);
    }
  }
}

// Code outside of the scope: it may have run at any time.
void Flow::add_from_elsewhere(Search& search, const Scope& own) const {
  std::vector<const Definition*> others = definitions_.of_root(*search.binding, search.variable.name);
  std::erase_if(others, [&own](const Definition* each) {
    return each->scope == &own || each->kind == DefinitionKind::Declaration;
  });
  const auto later = std::find_if(others.begin(), others.end(), [&search](const Definition* each) {
    return each->target.begin_byte() > search.place.begin_byte();
  });
  std::reverse(others.begin(), later);  // the nearest first
  for (const Definition* each : others) {
    const Overlap how = overlap(each->variable, search.variable);
    if (how != Overlap::None) search.add(*each, how);
  }
}

void Flow::run(Search& search) const {
  const Scope& from = scopes_.of(search.place);
  search.binding = search.variable.name.empty() ? nullptr : scopes_.binding(search.variable.name, from);
  const Scope* own = &running_scope(from);
  if (search.binding != nullptr && search.binding->kind == ScopeKind::Comprehension) {
    return add_from_elsewhere(search, scopes_.module());
  }
  for (;;) {
    this->search(search, course(*own));
    if (!search.entry || search.binding == own || own->kind != ScopeKind::Class) break;
    own = &running_scope(*own->parent);
  }
  search.found.from_entry = search.entry;
  if (search.binding == nullptr || (search.binding != own && !search.entry)) return;
  const std::size_t before = search.found.definitions.size();
  add_from_elsewhere(search, *own);
  // A name that another scope binds has its value from there.
  const bool found = search.found.definitions.size() > before;
  if (search.binding != own && found && search.variable.steps.empty()) search.found.from_entry = false;
}

Reaching Flow::reaching(Node use) const {
  const auto variable = variable_of(use);
  return variable ? reaching(*variable, use) : Reaching{{}, true};
}

Reaching Flow::reaching(const Variable& variable, Node place) const {
  Search search;
  search.variable = variable;
  search.place = place;
  run(search);
  return std::move(search.found);
}

std::vector<const Definition*> Flow::parts_stored(Node use) const {
  Search search;
  const auto variable = variable_of(use);
  if (!variable) return {};
  search.variable = *variable;
  search.place = use;
  run(search);
  return std::move(search.stored_parts);
}

}  // namespace devsan::program
