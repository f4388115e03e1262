#include <algorithm>

#include "report/program/definitions.h"
#include "report/program/literals.h"

namespace devsan::program {
namespace {

std::string step_of_subscript(Node subscript) {
  const std::vector<Node> keys = subscript.children(Field::Subscript);
  if (keys.size() != 1) return "[]";
  if (const auto number = integer_value(keys[0])) return "[" + std::to_string(*number) + "]";
  if (const auto text = string_value(keys[0])) return "['" + *text + "']";
  return "[]";
}

}  // namespace

std::string Variable::text() const {
  std::string text(name);
  for (const std::string& step : steps) text += step;
  return text;
}

std::optional<Variable> variable_of(Node expression) {
  Variable variable;
  Node at = expression;
  for (;;) {
    if (at.is(Kind::ParenthesizedExpression)) {
      at = at.only_child();
    } else if (at.is(Kind::Attribute)) {
      variable.steps.push_back("." + std::string(at.child(Field::Attribute).text()));
      at = at.child(Field::Object);
    } else if (at.is(Kind::Subscript)) {
      variable.steps.push_back(step_of_subscript(at));
      at = at.child(Field::Value);
    } else {
      break;
    }
  }
  if (at.is(Kind::Identifier)) variable.name = at.text();
  if (variable.name.empty() && variable.steps.empty()) return std::nullopt;
  std::reverse(variable.steps.begin(), variable.steps.end());
  return variable;
}

Overlap overlap(const Variable& stored, const Variable& read) {
  if (stored.name != read.name || stored.name.empty()) return Overlap::None;
  const std::size_t common = std::min(stored.steps.size(), read.steps.size());
  bool unsure = false;
  for (std::size_t at = 0; at < common; ++at) {
    const std::string& one = stored.steps[at];
    const std::string& other = read.steps[at];
    const bool subscripts = one.front() == '[' && other.front() == '[';
    const bool unknown = subscripts && (one == "[]" || other == "[]");
    if (one != other && !unknown) return Overlap::None;
    unsure = unsure || unknown;
  }
  if (stored.steps.size() > read.steps.size()) return Overlap::Part;
  return unsure ? Overlap::Perhaps : Overlap::Whole;
}

}  // namespace devsan::program
