#include "report/slice/slicer.h"

#include <algorithm>

#include "report/program/literals.h"
#include "report/program/positions.h"

namespace devsan::report::slice {

using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr int kLongestStatement = 6;  // lines, in which a step of a history may still stand

// Nothing of a device comes through these.
bool leads_nowhere(Node node) {
  switch (node.kind()) {
    case Kind::Slice:
    case Kind::Comment:
    case Kind::Integer:
    case Kind::Float:
    case Kind::True:
    case Kind::False:
    case Kind::NoneLiteral:
    case Kind::String:
    case Kind::ConcatenatedString:
    case Kind::ComparisonOperator:
    case Kind::IfClause:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Slicer::Nearest::operator()(std::size_t left, std::size_t right) const {
  const double one = (*steps)[left].distance;
  const double other = (*steps)[right].distance;
  return one != other ? one > other : left > right;
}

void Slicer::push(Node node, double distance, Aspect aspect, const Part& part) {
  if (!node || distance > kFarthest) return;
  const auto [known, fresh] = seen_.try_emplace(Key(node, aspect, part), Seen{seen_.size(), distance});
  if (current_ != kNoStep) leads_.emplace_back(steps_[current_].expression, known->second.expression);
  if (!fresh) {
    if (known->second.distance <= distance) return;
    known->second.distance = distance;
  }
  steps_.push_back({known->second.expression, node, aspect, part, distance, current_});
  heap_.push_back(steps_.size() - 1);
  std::ranges::push_heap(heap_, Nearest{&steps_});
}

void Slicer::run() {
  for (const std::size_t most = visited_ + kSteps; !heap_.empty() && visited_ < most; ++visited_) {
    std::ranges::pop_heap(heap_, Nearest{&steps_});
    current_ = heap_.back();
    heap_.pop_back();
    const Step step = steps_[current_];
    part_ = step.part;
    visit(step);
  }
  current_ = kNoStep;
  part_ = {};
}

void Slicer::add(Node node, Role role, double distance, Aspect aspect, Node value) {
  if (!node) return;
  places_.push_back({node, role, aspect, side_, distance, value ? value : node});
  place_steps_.push_back(current_);
}

bool Slicer::is_nearer(std::string_view what, std::string_view name, Node scope, Aspect aspect, double distance) {
  const auto [known, fresh] =
      looked_up_.try_emplace({std::string(what), std::string(name), scope, aspect, part_}, distance);
  if (!fresh && known->second <= distance) return false;
  known->second = distance;
  return true;
}

void Slicer::visit(const Step& step) {
  const Node node = step.node;
  const double distance = step.distance;
  switch (node.kind()) {
    case Kind::Identifier:
      return name(node, distance, step.aspect);
    case Kind::Attribute:
      return attribute(node, distance, step.aspect);
    case Kind::Call:
      return call(node, distance, step.aspect);
    case Kind::Subscript: {
      const std::vector<Node> keys = node.children(Field::Subscript);
      const std::string key = keys.size() == 1 ? program::string_value(keys.front()).value_or("") : "";
      return push(node.child(Field::Value), distance, step.aspect, {key, -1});
    }
    case Kind::Dictionary:
      return dictionary(node, distance, step.aspect);
    case Kind::DictionarySplat:
      return push(node.only_child(), distance, step.aspect, part_);
    case Kind::ConditionalExpression:
      return conditional(node, distance, step.aspect);
    case Kind::Lambda:
      return push(node.child(Field::Body), distance + 1, step.aspect);
    case Kind::ForInClause:
      return push(node.child(Field::Right), distance + 1, step.aspect);
    default:
      return children(node, distance, step.aspect);
  }
}

void Slicer::children(Node node, double distance, Aspect aspect) {
  if (leads_nowhere(node)) {
    if (program::is_string(node) && aspect == Aspect::device) add(node, Role::device_written, distance, aspect);
    return;
  }
  const bool tuple = node.is(Kind::Tuple) || node.is(Kind::ExpressionList);
  const std::vector<Node> parts = node.children();
  if (tuple && part_.index >= 0 && static_cast<std::size_t>(part_.index) < parts.size()) {
    return push(parts[static_cast<std::size_t>(part_.index)], distance, aspect);
  }
  for (const Node child : parts) push(child, distance, aspect, node.is(Kind::ParenthesizedExpression) ? part_ : Part());
}

void Slicer::dictionary(Node node, double distance, Aspect aspect) {
  const std::string wanted = part_.key;
  std::vector<Node> chosen, others;
  for (const Node child : node.children()) {
    const auto key = child.is(Kind::Pair) ? program::string_value(child.child(Field::Key)) : std::nullopt;
    if (!wanted.empty() && key && *key == wanted) chosen.push_back(child);
    if (wanted.empty() || !key) others.push_back(child);
  }
  for (const Node child : chosen.empty() ? others : chosen) {
    if (!child.is(Kind::Pair)) {
      push(child, distance, aspect, part_);
      continue;
    }
    const Node value = child.child(Field::Value);
    add(child, Role::field, distance + 0.5, aspect, value);
    push(value, distance + 0.5, aspect);
  }
}

void Slicer::conditional(Node node, double distance, Aspect aspect) {
  add(node, Role::chosen, distance, aspect);
  const program::ConditionalParts parts = program::conditional_parts(node);
  push(parts.if_true, distance + 0.3, aspect, part_);
  push(parts.if_false, distance + 0.3, aspect, part_);
}

void Slicer::mark_ways_to(const program::SourceFile& file, int line, const std::function<bool(Node)>& decides) {
  std::vector<std::size_t> at_line, deciding;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    if (step.aspect == Aspect::device || &step.node.file() != &file) continue;
    const program::Range range = step.node.range();
    if (line < range.line || range.end_line < line || range.end_line - range.line >= kLongestStatement) continue;
    at_line.push_back(k);
    if (decides(step.node)) deciding.push_back(k);
  }
  mark_shortest(at_line, [&](std::size_t k) {
    const Step& step = steps_[k];
    return step.distance - (decides(step.node) ? 3 : 0) + (step.node.line() != line ? 2 : 0);
  });
  mark_all(deciding.empty() ? at_line : deciding);
}

void Slicer::mark_shortest(const std::vector<std::size_t>& ends, const std::function<double(std::size_t)>& length) {
  if (ends.empty()) return;
  std::map<std::size_t, std::size_t> place_on_way;
  std::size_t count = 0;
  for (std::size_t k = *std::ranges::min_element(ends, {}, length); k != kNoStep; k = steps_[k].from) {
    place_on_way[k] = count++;
  }
  for (std::size_t k = 0; k < places_.size(); ++k) {
    const auto found = place_on_way.find(place_steps_[k]);
    if (found == place_on_way.end()) continue;
    places_[k].from_origin = found->second;
    places_[k].from_use = count - 1 - found->second;
  }
}

void Slicer::mark_all(const std::vector<std::size_t>& ends) {
  std::vector<std::vector<Expression>> before(seen_.size());
  for (const auto& [from, to] : leads_) before[to].push_back(from);
  std::vector<bool> leads(seen_.size(), false);
  std::vector<Expression> open;
  for (const std::size_t step : ends) open.push_back(steps_[step].expression);
  while (!open.empty()) {
    const Expression expression = open.back();
    open.pop_back();
    if (leads[expression]) continue;
    leads[expression] = true;
    open.insert(open.end(), before[expression].begin(), before[expression].end());
  }
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (ends.empty() || place_steps_[k] == kNoStep) continue;
    places_[k].leads_to_origin = leads[steps_[place_steps_[k]].expression];
  }
}

bool is_dropped(Node call) {
  return call.parent().is(Kind::ExpressionStatement);
}

bool is_empty_value(Node value) {
  const Node bare = program::without_parentheses(value);
  switch (bare.kind()) {
    case Kind::NoneLiteral:
    case Kind::True:
    case Kind::False:
    case Kind::Integer:
    case Kind::Float:
      return true;
    case Kind::UnaryOperator:
      return is_empty_value(bare.child(Field::Argument));
    case Kind::List:
    case Kind::Dictionary:
    case Kind::Tuple:
      return bare.children().empty();
    case Kind::Call: {
      const std::string_view called = called_name(bare);
      if (called == "defaultdict" || called == "deque") return true;
      const bool container = called == "dict" || called == "list" || called == "set" || called == "OrderedDict";
      return container && program::call_parts(bare).arguments.empty();
    }
    default:
      return false;
  }
}

}  // namespace devsan::report::slice
