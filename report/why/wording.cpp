#include "report/why/wording.h"

#include <algorithm>
#include <cctype>

#include "report/frames.h"
#include "report/operands.h"

namespace devsan::report::why {
namespace {

// Longer expressions make a sentence hard to read; the report shows their line anyway.
constexpr std::size_t kLongestSubject = 48;
constexpr std::size_t kLongestCounterpart = 32;

// "layers.3.weight" names a parameter by its place in the module and is no expression of the program; in "1.5 * x" the
// digit belongs to a number.
bool has_numeric_segment(std::string_view name) {
  const auto is_digit = [&](std::size_t at) { return std::isdigit(static_cast<unsigned char>(name[at])) != 0; };
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    if (dot > 0 && dot + 1 < name.size() && is_digit(dot + 1) && !is_digit(dot - 1)) return true;
  }
  return false;
}

// A key that is no text, a member of a set or a variable of a closure is shown, and is no code.
bool is_code(std::string_view name) {
  return name.find("...") == name.npos && name.find('<') == name.npos;
}

// What can be written into the line that failed; empty where there is nothing short and safe to write.
std::string expression_for(const Operand& operand, std::size_t longest) {
  if (operand.text.empty() && !operand.spoken) return "";
  const std::string& text = operand.text.empty() ? operand.name : operand.text;
  const bool code = !operand.text.empty() || is_code(text);
  return text.size() <= longest && code && !has_numeric_segment(text) ? text : "";
}

}  // namespace

std::string where_used(const Operand& odd, const Operand& counterpart, const Finding& finding) {
  const auto is_of_program = [](const Frame& one) { return !one.library && !one.torch; };
  const auto call = std::ranges::find_if(finding.stack, is_of_program);
  if (finding.where->library && !finding.within_libraries && call != finding.stack.end()) {
    return "before it is given to the library, in " + short_place(*call);
  }
  return "where it is used, in " + short_place(*finding.where) + ": `" + move_call(odd, counterpart) + "`";
}

bool is_postfix_expression(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 ||
                       std::string_view("_.()[]{}").find(c) != std::string_view::npos;
    if (depth == 0 && !plain) return false;
  }
  return depth == 0 && !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0;
}

std::string mention(const Operand& operand) {
  return operand.name.empty() ? "the operand `" + operand.arg + "`" : "`" + operand.name + "`";
}

std::string mention_first(const Operand& operand) {
  return operand.name.empty() ? "The operand `" + operand.arg + "`" : mention(operand);
}

std::string move_call(const Operand& odd, const Operand& counterpart) {
  std::string subject = expression_for(odd, kLongestSubject);
  if (!subject.empty() && !is_postfix_expression(subject)) subject = "(" + subject + ")";
  return subject + ".to(" + device_expression(counterpart) + ")";
}

std::string device_expression(const Operand& counterpart) {
  const bool has_device = counterpart.shape || counterpart.generator;
  const std::string other = has_device ? expression_for(counterpart, kLongestCounterpart) : "";
  return is_postfix_expression(other) ? other + ".device" : "'" + counterpart.device + "'";
}

std::string spoken_device(std::string_view device) {
  return device == "cpu" ? "the CPU" : std::string(device);
}

std::string type_of_path(std::string_view type_and_attribute) {
  const auto dot = type_and_attribute.rfind('.');
  return std::string(type_and_attribute.substr(0, dot));
}

std::string_view attribute_of_path(std::string_view type_and_attribute) {
  const auto dot = type_and_attribute.rfind('.');
  return dot == type_and_attribute.npos ? std::string_view() : type_and_attribute.substr(dot + 1);
}

std::string takes_in_place(const Operand& taken) {
  return "takes in " + mention(taken) + ", which is on " + taken.device +
         ", and an operator in place cannot change its target's device.";
}

RootCause cause_at(const Frame& place, const Operand& operand, std::string why) {
  return {place.file, place.line, place.function, spoken_name(operand), std::move(why)};
}

bool was_moved(const Operand& operand) {
  return std::ranges::any_of(operand.lineage, [](const LineageStep& step) { return step.how == trace::How::moved; });
}

}  // namespace devsan::report::why
