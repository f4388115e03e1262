#include "report/causes/cause_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "report/program/scopes.h"
#include "trace/words.h"

namespace devsan::report {
namespace {

// Longer names make a sentence hard to read; the report shows their line anyway.
constexpr std::size_t kLongestMention = 40;

std::string replaced(std::string text, std::string_view mark, const std::string& value) {
  for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + value.size())) {
    text.replace(at, mark.size(), value);
  }
  return text;
}

std::string capitalised(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 32);
  return text;
}

std::string quoted(const std::string& text) {
  return "`" + text + "`";
}

std::string mention(const Operand* operand) {
  if (operand == nullptr) return "the operand";
  if (operand->name.empty() || operand->name.size() > kLongestMention) {
    return operand->arg.empty() ? "the operand" : "the operand " + quoted(operand->arg);
  }
  const std::string name = quoted(operand->name);
  if (operand->generator) return "the generator " + name;
  if (operand->is == trace::NameKind::parameter) return "the parameter " + name;
  return operand->is == trace::NameKind::buffer ? "the buffer " + name : name;
}

bool is_weight(const Operand* operand) {
  return operand != nullptr && (operand->is == trace::NameKind::parameter || operand->is == trace::NameKind::buffer);
}

// "x", "self.bias": what can be written into the failing line as it is. "layers.3.weight" names a parameter by its
// place in the module, and is no expression.
bool is_dotted_name(std::string_view text) {
  bool begins = true;
  for (const char c : text) {
    const bool fits =
        begins ? trace::is_word(c) && std::isdigit(static_cast<unsigned char>(c)) == 0 : trace::is_word(c) || c == '.';
    if (!fits) return false;
    begins = c == '.';
  }
  return !begins;
}

// Whether the first name of an expression has a value before the line: the function is given it, binds it above, or
// takes it from outside.
bool has_value_before(std::string_view expression, const ranking::Candidate& candidate) {
  const program::SourceFile& file = *candidate.file;
  const program::Scope* scope = file.scopes().made_by(candidate.function);
  if (scope == nullptr) return false;
  const std::string_view name = expression.substr(0, expression.find('.'));
  if (!scope->names.contains(name) || scope->parameter(name) != nullptr) return true;
  return std::ranges::any_of(file.definitions().of_name(*scope, name), [&](const program::Definition* definition) {
    return definition->target.line() < candidate.line;
  });
}

// How the failing function writes the other operand, if the line can say so as well; else empty.
std::string expression_at(const Suspect& suspect, const Finding& finding, const slice::Code& code) {
  const Operand* other = suspect.other;
  if (other == nullptr || (!other->shape && !other->generator) || !finding.where) return "";
  if (other->text.empty() && !other->spoken) return "";
  const std::string& text = other->text.empty() ? other->name : other->text;
  const ranking::Candidate& candidate = suspect.candidate;
  const bool near = candidate.line <= finding.where->line && candidate.function &&
                    candidate.function == code.function_at(*finding.where);
  const bool fits = near && text.size() <= kLongestMention && is_dotted_name(text);
  return fits && has_value_before(text, candidate) ? text : "";
}

// Where the operand should be: in words, as the way there, and as code.
struct Wanted {
  std::string device;
  std::string way;
  std::string code;
};

Wanted wanted_by(const Suspect& suspect, const Finding& finding, const slice::Code& code) {
  const std::string expression = expression_at(suspect, finding, code);
  if (!expression.empty()) {
    const std::string device = expression + ".device";
    const std::string words = "the device of " + quoted(expression);
    return {words, "to " + words + " with `.to(" + device + ")`", device};
  }
  if (suspect.other != nullptr) {
    const std::string& device = suspect.other->device;
    return {device, "to " + device, "'" + device + "'"};
  }
  const bool host = suspect.operand != nullptr && !suspect.operand->on_cpu();
  if (host) return {"the CPU", "to the CPU with `.cpu()`", "'cpu'"};
  return {"the device of the others", "to the device of the others", "…"};
}

std::string device_told(const Operand& operand) {
  if (operand.device_argument) return "the call asks for " + operand.device;
  return mention(&operand) + " was on " + operand.device;
}

}  // namespace

Mechanism mechanism_of(const Suspect& suspect) {
  using enum slice::Role;
  const slice::Role role = suspect.place.role;
  const bool begins = role == made || role == history_created || role == registered;
  return begins && is_weight(suspect.operand) ? Mechanism::module_not_moved : mechanism_of(role);
}

std::string what_line_does(const Suspect& suspect) {
  const std::string sentence(slice::sentence_of(suspect.place.role));
  return capitalised(replaced(sentence, "{}", mention(suspect.operand))) + ".";
}

std::string what_disagreed(const Suspect& suspect) {
  if (suspect.operand == nullptr) return "";
  std::string text = device_told(*suspect.operand);
  if (suspect.other != nullptr) {
    const bool alike = mention(suspect.other) == mention(suspect.operand);
    text += "; " + (alike ? "the other one was on " + suspect.other->device : device_told(*suspect.other));
  }
  return capitalised(std::move(text)) + ".";
}

std::string what_to_change(const Suspect& suspect, const Finding& finding, const slice::Code& code) {
  const Wanted wanted = wanted_by(suspect, finding, code);
  const std::array<std::pair<std::string_view, std::string>, 4> values = {
      {{"{}", mention(suspect.operand)}, {"{device}", wanted.device}, {"{to}", wanted.way}, {"{code}", wanted.code}}};
  std::string text(change_of(mechanism_of(suspect)));
  for (const auto& [mark, value] : values) text = replaced(std::move(text), mark, value);
  return text;
}

}  // namespace devsan::report
