#include "hooks/inprocess/evidence/listing.h"

#include <algorithm>
#include <utility>

#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_loops.h"
#include "hooks/inprocess/source/python_puts.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxSteps = 6;

// "attr" of "self.attr" and "trainer.attr".
std::string attribute_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos || !is_identifier(path.substr(dot + 1))) return "";
  return std::string(path.substr(dot + 1));
}

bool is_empty_display(std::string_view text) {
  return text == "[]" || text == "{}" || text == "()" || text == "list()" || text == "dict()";
}

}  // namespace

Listing::Listing(const trace::Position& begin, std::uint32_t calls)
    : frames_(call_frames(begin, calls)), line_(begin.line) {}

const SourceLines& Listing::lines() {
  const trace::StringId file = frames_[frame_].file;
  if (!lines_ || lines_of_ != file) lines_.emplace(files_.whole(file));
  lines_of_ = file;
  return *lines_;
}

Listing::Found Listing::here(int line, std::string text) {
  return {position_at(frames_[frame_].file, line, qualified_function(lines(), line)), std::move(text)};
}

// A comprehension around the line goes before a loop around that; one in a hook that the line defines goes through
// something else.
std::optional<Listing::Found> Listing::find() {
  if (auto found = gone_through(line_)) return found;
  const auto loop = loop_around(frames_.front());
  return loop ? gone_through(loop->line) : std::nullopt;
}

// What the loop or comprehension in a line of the innermost function goes through.
std::optional<Listing::Found> Listing::gone_through(int line) {
  frame_ = 0;
  steps_ = 0;
  line_ = line;
  const std::string source = iterated(statement_at(lines(), line_));
  return source.empty() ? std::nullopt : resolve(source);
}

std::optional<Listing::Found> Listing::resolve(std::string expression) {
  if (++steps_ > kMaxSteps) return std::nullopt;
  expression = unwrapped(expression);
  if (is_display(expression)) return here(line_, std::move(expression));
  if (is_identifier(expression)) {
    if (auto found = stored_in_function(expression)) return found;
    if (auto found = given_by_caller(expression)) return found;
    return stored_anywhere(expression, Scope::module);
  }
  const auto call = call_text(expression);
  const bool called = call && expression.ends_with(')');
  if (called) expression = call->callee;
  const std::string attribute = attribute_of(expression);
  if (called) return returned_by(attribute.empty() ? expression : attribute);
  if (attribute.empty()) return std::nullopt;
  if (auto found = stored_anywhere("self." + attribute, Scope::everywhere)) return found;
  if (auto found = stored_anywhere(attribute, Scope::types)) return found;
  return returned_by(attribute);
}

// `nets = [a, b]` above, in the same function or outside of all, and what is put into it from there on:
// `nets.append(c)`. Where it begins as something else, the last line that puts something there.
std::optional<Listing::Found> Listing::stored_in_function(const std::string& name) {
  const int definition = enclosing_line(lines(), line_, "def ");
  std::string puts;
  int put = 0;
  for (int k = line_ - 1; k > definition; --k) {
    if (is_blank(lines()[k]) || (definition == 0 && enclosing_line(lines(), k, "def ") != 0)) continue;
    const std::string statement = statement_at(lines(), k);
    auto value = assigned_to(statement, name);
    if (!value) {
      const auto fills = [&](const ContainerPut& one) { return container_name(one.container) == name; };
      if (!std::ranges::any_of(puts_in(statement), fills)) continue;
      puts += ' ' + statement;
      put = std::max(put, k);
      continue;
    }
    if (put == 0) {
      line_ = k;
      return resolve(std::move(*value));
    }
    return here(is_display(unwrapped(*value)) && !is_empty_display(*value) ? k : put, *value + puts);
  }
  return std::nullopt;
}

// What the call gives for a parameter: for `*nets` all of its arguments.
std::optional<Listing::Found> Listing::given_by_caller(const std::string& name) {
  const int definition = enclosing_line(lines(), line_, "def ");
  if (definition == 0) return std::nullopt;
  const std::string defined = statement_at(lines(), definition);
  const auto parameter = parameter_of(defined, name);
  const bool rest = parameter_of(defined, "*" + name).has_value();
  const std::string function = defined_name(lines()[definition], "def ");
  if (!parameter && !rest) return std::nullopt;
  while (frame_ < frames_.size() && is_comprehension(frames_[frame_])) ++frame_;
  if (++frame_ >= frames_.size()) return std::nullopt;
  line_ = frames_[frame_].line;
  const std::string statement = statement_at(lines(), line_);
  const std::size_t begin = call_in(statement, function);
  if (begin == statement.npos) return std::nullopt;
  const std::size_t closing = closing_of(statement, begin + function.size());
  if (closing == statement.npos) return std::nullopt;
  std::string call = statement.substr(begin, closing + 1 - begin);
  if (rest) return here(line_, call.substr(function.size()));
  const auto text = call_text(call);
  if (!text) return std::nullopt;
  Given given = given_for(*parameter, *text, is_bound(defined));
  return given.by == Given::By::value ? resolve(std::move(given.text)) : std::nullopt;
}

// Whether a statement stands outside of all functions and classes, or in the body of a class.
bool Listing::is_in(Scope scope, int line) {
  const bool outermost = indentation(lines()[line]) == 0;
  if (scope == Scope::module) return outermost;
  return scope == Scope::everywhere || (!outermost && enclosing_line(lines(), line, "def ") == 0);
}

// The only statement there that stores it.
std::optional<Listing::Found> Listing::stored_anywhere(const std::string& target, Scope scope) {
  int found = 0;
  std::string text;
  for (int k = 1; k <= lines().count(); ++k) {
    const std::string_view line = lines()[k];
    if (line.find(target) == line.npos || is_blank(line) || !is_in(scope, k)) continue;
    auto value = assigned_to(statement_at(lines(), k), target);
    if (!value || !is_display(unwrapped(*value))) continue;
    if (found != 0) return std::nullopt;
    found = k;
    text = std::move(*value);
  }
  return found != 0 ? std::optional(here(found, std::move(text))) : std::nullopt;
}

// The only `return` of the only function of this name.
std::optional<Listing::Found> Listing::returned_by(const std::string& function) {
  int definition = 0;
  for (int k = 1; k <= lines().count(); ++k) {
    const std::string_view line = lines()[k];
    if (!line.substr(indentation(line)).starts_with("def ") || defined_name(line, "def ") != function) continue;
    if (definition != 0) return std::nullopt;
    definition = k;
  }
  if (definition == 0) return std::nullopt;
  constexpr std::string_view kReturn = "return ";
  const std::size_t outer = indentation(lines()[definition]);
  std::optional<Found> found;
  for (int k = definition + 1; k <= lines().count(); ++k) {
    const std::string_view line = lines()[k];
    if (is_blank(line)) continue;
    if (indentation(line) <= outer) break;
    if (!line.substr(indentation(line)).starts_with(kReturn)) continue;
    std::string value = unwrapped(std::string_view(statement_at(lines(), k)).substr(kReturn.size()));
    if (found) return std::nullopt;
    if (is_identifier(value)) {
      line_ = k;
      found = stored_in_function(value);
      if (!found) return std::nullopt;
    } else if (is_display(value)) {
      found = here(k, std::move(value));
    } else {
      return std::nullopt;
    }
  }
  return found;
}

}  // namespace devsan::hooks
