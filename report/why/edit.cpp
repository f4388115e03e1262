#include "report/why/edit.h"

#include "report/call_text.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Longer edits are harder to read than a sentence.
constexpr std::size_t kLongestEdit = 100;

std::string unless_too_long(std::string text) {
  return text.size() <= kLongestEdit ? text : std::string();
}

}  // namespace

std::string call_at(const Frame& place) {
  return std::string(call_text_of(place));
}

std::string with_argument(std::string_view call, std::string_view argument) {
  const auto parts = split_call(call);
  if (!parts || parts->subscript || !call.ends_with(')')) return "";
  const std::string_view keyword = argument.substr(0, argument.find('='));
  for (const ArgumentText& given : parts->arguments) {
    if (given.keyword != keyword) continue;
    const auto begin = static_cast<std::size_t>(given.text.data() - call.data());
    return unless_too_long(std::string(call.substr(0, begin)) + std::string(argument.substr(keyword.size() + 1)) +
                           std::string(call.substr(begin + given.text.size())));
  }
  std::string text(call.substr(0, call.size() - 1));
  if (!parts->arguments.empty()) text += text.ends_with(',') ? " " : ", ";
  return unless_too_long(text + std::string(argument) + ")");
}

std::string device_at(const Frame& place, const Operand& wanted, const Finding& finding) {
  const std::string literal = "'" + wanted.device + "'";
  if (!finding.where || !same_function(place, *finding.where)) return literal;
  const bool later = place.line >= finding.where->line;
  const bool made_later = !wanted.lineage.empty() && same_function(place, wanted.lineage.front().at) &&
                          wanted.lineage.front().at.line >= place.line;
  return later || made_later ? literal : device_expression(wanted);
}

std::string registered_as_buffer(const Frame& place, std::string_view attribute) {
  const auto assignment = split_assignment(place.statement());
  if (!assignment || !assignment->target.starts_with("self.")) return "";
  const std::string_view name = assignment->target.substr(5);
  if (name != attribute) return "";  // more than one target, or what the value keeps
  return unless_too_long("self.register_buffer('" + std::string(name) + "', " + std::string(assignment->value) + ")");
}

Fix register_as_buffer(const Frame& place, std::string_view attribute) {
  const std::string edit = registered_as_buffer(place, attribute);
  std::string text = edit.empty() ? "Register it with `register_buffer()`" : "Register it: `" + edit + "`";
  if (attribute.ends_with(']'))
    text = "A container cannot be a buffer: register each of its entries, by a name of its own";
  return {place.file, place.line, text + ", with `persistent=False` if checkpoints should not hold it."};
}

std::string assigned_after_move(const Frame& place, std::string_view device) {
  const auto assignment = split_assignment(place.statement());
  if (!assignment || !is_postfix_expression(assignment->value)) return "";
  if (assignment->target.find(',') != std::string_view::npos) return "";
  if (assignment->value.front() == '[' || assignment->value.front() == '{') return "";  // a container has no `.to()`
  return unless_too_long(std::string(assignment->target) + " = " + std::string(assignment->value) + ".to(" +
                         std::string(device) + ")");
}

Fix move_module_where_made(const Frame& place, std::string_view device) {
  const std::string name(device);
  return {place.file, place.line, "Move the module to " + name + " where it is made, with `.to('" + name + "')`."};
}

}  // namespace devsan::report::why
