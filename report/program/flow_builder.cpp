#include "report/program/flow_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "report/program/expressions.h"

namespace devsan::program {
namespace {

// CPython allows a hundred levels of indentation. Deeper statements are one vertex.
constexpr int kDeepestStatement = 200;
// A `finally` inside the block of another doubles the vertices; from here on the two courses share them.
constexpr int kDeepestFinally = 3;

bool always_true(Node condition) {
  const Node bare = without_parentheses(condition);
  return bare.is(Kind::True) || bare.text() == "1";
}

// The managers that swallow exceptions, so that what follows may run after any part of their block.
bool swallows_exceptions(Node clause) {
  for (const Node item : clause.children()) {
    Node manager = item.child(Field::Value);
    if (manager.is(Kind::AsPattern) && !manager.children().empty()) manager = manager.children().front();
    const std::string name = dotted_name(manager.child(Field::Function));
    for (const char* known : {"suppress", "raises", "assertRaises", "assertRaisesRegex"}) {
      if (name == known || name.ends_with(std::string(".") + known)) return true;
    }
  }
  return false;
}

// A name alone, or `_`, takes whatever comes.
bool takes_all(Node clause) {
  std::vector<Node> patterns;
  for (const Node part : clause.children()) {
    if (part.is(Kind::CasePattern)) patterns.push_back(part);
  }
  if (patterns.size() != 1 || clause.child(Field::Guard)) return false;
  const Node pattern = patterns.front();
  if (pattern.text() == "_") return true;
  const Node name = pattern.only_child();
  return name.is(Kind::DottedName) && static_cast<bool>(name.only_child());
}

}  // namespace

FlowBuilder::FlowBuilder(FlowGraph& graph) : graph_(graph) {
  graph_.vertices_.emplace_back();
  ends_.push_back(FlowGraph::kEntry);
}

void FlowBuilder::build(const Scope& scope) {
  switch (scope.kind) {
    case ScopeKind::Module:
      block(scope.node);
      break;
    case ScopeKind::Lambda:
      add(scope.node.child(Field::Body));
      break;
    case ScopeKind::Function:
    case ScopeKind::Class:
      block(scope.node.child(Field::Body));
      break;
    case ScopeKind::Comprehension:
    case ScopeKind::TypeParameters:
      break;
  }
  graph_.ends_ = ends_;
}

std::uint32_t FlowBuilder::add(Node root) {
  const auto vertex = static_cast<std::uint32_t>(graph_.vertices_.size());
  graph_.vertices_.push_back({root, {}});
  link(ends_, vertex);
  ends_.assign(1, vertex);
  return vertex;
}

FlowBuilder::Ends FlowBuilder::vertices_from(std::uint32_t first) const {
  Ends all(graph_.vertices_.size() - first);
  std::iota(all.begin(), all.end(), first);
  return all;
}

void FlowBuilder::link(const Ends& from, std::uint32_t to) {
  merge(graph_.vertices_[to].before, from);
}

// Ends are in order and each is there once; mostly the further ones are the later ones.
void FlowBuilder::merge(Ends& into, const Ends& more) {
  const bool later = into.empty() || more.empty() || into.back() < more.front();
  const auto middle = static_cast<std::ptrdiff_t>(into.size());
  into.insert(into.end(), more.begin(), more.end());
  if (later) return;
  std::inplace_merge(into.begin(), into.begin() + middle, into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

void FlowBuilder::block(Node node) {
  for (const Node child : node.children()) statement(child);
}

void FlowBuilder::statement(Node node) {
  if (depth_ >= kDeepestStatement) {
    add(node);
    return;
  }
  ++depth_;
  switch (node.kind()) {
    case Kind::IfStatement:
      if_statement(node);
      break;
    case Kind::WhileStatement:
      while_statement(node);
      break;
    case Kind::ForStatement:
      for_statement(node);
      break;
    case Kind::WithStatement:
      with_statement(node);
      break;
    case Kind::TryStatement:
      try_statement(node);
      break;
    case Kind::MatchStatement:
      match_statement(node);
      break;
    case Kind::Block:
      block(node);
      break;
    default:
      add(node);
      if (node.is(Kind::BreakStatement)) jump(Jump::Break);
      if (node.is(Kind::ContinueStatement)) jump(Jump::Continue);
      if (node.is(Kind::ReturnStatement)) jump(Jump::Return);
      if (node.is(Kind::RaiseStatement)) ends_.clear();
  }
  --depth_;
}

void FlowBuilder::if_statement(Node node) {
  Ends after;
  add(node.child(Field::Condition));
  Ends otherwise = ends_;
  block(node.child(Field::Consequence));
  merge(after, ends_);
  for (const Node clause : node.children(Field::Alternative)) {
    ends_ = std::exchange(otherwise, {});
    if (clause.is(Kind::ElifClause)) {
      add(clause.child(Field::Condition));
      otherwise = ends_;
      block(clause.child(Field::Consequence));
    } else {
      block(clause.child(Field::Body));
    }
    merge(after, ends_);
  }
  merge(after, otherwise);
  ends_ = std::move(after);
}

void FlowBuilder::while_statement(Node node) {
  const Node condition = node.child(Field::Condition);
  const std::uint32_t head = add(condition);
  frames_.push_back({.loop = true, .breaks = {}, .continues = {}, .jumps = {}});
  block(node.child(Field::Body));
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  merge(ends_, frame.continues);
  link(ends_, head);
  ends_ = always_true(condition) ? Ends() : Ends{head};
  block(node.child(Field::Alternative).child(Field::Body));
  merge(ends_, frame.breaks);
}

// When there is no further element, the targets keep what they had: the loop ends where an element would be asked for.
void FlowBuilder::for_statement(Node node) {
  const std::uint32_t iterable = add(node.child(Field::Right));
  const std::uint32_t targets = add(node.child(Field::Left));
  frames_.push_back({.loop = true, .breaks = {}, .continues = {}, .jumps = {}});
  block(node.child(Field::Body));
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  merge(ends_, frame.continues);
  link(ends_, targets);
  merge(ends_, {iterable});
  block(node.child(Field::Alternative).child(Field::Body));
  merge(ends_, frame.breaks);
}

void FlowBuilder::with_statement(Node node) {
  const std::vector<Node> parts = node.children();
  const Node clause = parts.empty() ? Node() : parts.front();
  for (const Node item : clause.children()) add(item);
  const Ends entered = ends_;
  const auto first = static_cast<std::uint32_t>(graph_.vertices_.size());
  block(node.child(Field::Body));
  if (!swallows_exceptions(clause)) return;
  merge(ends_, entered);
  merge(ends_, vertices_from(first));
}

void FlowBuilder::try_statement(Node node) {
  Node last;
  for (const Node child : node.children()) {
    if (child.is(Kind::FinallyClause)) last = child.only_child();
  }
  Ends raised = ends_;
  const auto first = static_cast<std::uint32_t>(graph_.vertices_.size());
  if (last) frames_.emplace_back();
  block(node.child(Field::Body));
  // An exception may leave every part of this code.
  merge(raised, vertices_from(first));
  Ends normal;
  handlers(node, raised, normal);
  if (!last) {
    ends_ = std::move(normal);
    return;
  }
  merge(raised, vertices_from(first));
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  ends_ = std::move(normal);
  finally_clause(last, std::move(raised), frame);
}

void FlowBuilder::handlers(Node node, const Ends& raised, Ends& normal) {
  for (const Node child : node.children()) {
    if (child.is(Kind::ElseClause)) block(child.child(Field::Body));
  }
  merge(normal, ends_);
  for (const Node clause : node.children()) {
    if (!clause.is(Kind::ExceptClause)) continue;
    ends_ = raised;
    for (const Node value : clause.children(Field::Value)) add(value);
    if (const Node alias = clause.child(Field::Alias)) add(alias);
    for (const Node child : clause.children()) {
      if (child.is(Kind::Block)) block(child);
    }
    merge(normal, ends_);
  }
}

void FlowBuilder::finally_clause(Node body, Ends raised, const Frame& frame) {
  merge(raised, frame.jumps);
  ++finally_depth_;
  const bool shared = finally_depth_ > kDeepestFinally;
  Ends normal;
  if (shared) {
    merge(ends_, raised);
    block(body);
    normal = ends_;
  } else {
    block(body);
    normal = std::exchange(ends_, std::move(raised));
    block(body);
  }
  --finally_depth_;
  const Ends abrupt = ends_;
  for (const Jump kind : {Jump::Break, Jump::Continue, Jump::Return}) {
    if (!frame.passed[static_cast<std::size_t>(kind)]) continue;
    ends_ = abrupt;
    jump(kind);
  }
  ends_ = std::move(normal);
}

void FlowBuilder::match_statement(Node node) {
  for (const Node subject : node.children(Field::Subject)) add(subject);
  Ends matched;
  bool exhausted = false;
  for (const Node clause : node.child(Field::Body).children()) {
    if (!clause.is(Kind::CaseClause)) continue;
    case_clause(clause, matched);
    exhausted = exhausted || takes_all(clause);
    if (exhausted) ends_.clear();
  }
  merge(ends_, matched);
}

// Leaves in `ends_` from where the next case is tried.
void FlowBuilder::case_clause(Node node, Ends& matched) {
  Ends failed = ends_;
  for (const Node part : node.children()) {
    if (part.is(Kind::CasePattern)) add(part);
  }
  if (const Node guard = node.child(Field::Guard)) {
    add(guard);
    merge(failed, ends_);
  }
  block(node.child(Field::Consequence));
  merge(matched, ends_);
  ends_ = std::move(failed);
}

void FlowBuilder::jump(Jump kind) {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (!frame->loop) {
      merge(frame->jumps, ends_);
      frame->passed[static_cast<std::size_t>(kind)] = true;
      break;
    }
    if (kind == Jump::Return) continue;
    merge(kind == Jump::Break ? frame->breaks : frame->continues, ends_);
    break;
  }
  ends_.clear();
}

}  // namespace devsan::program
