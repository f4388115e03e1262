#include "hooks/inprocess/snapshot/named_objects.h"

#include <string>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// ".scale", "[0]" and "['key']" at the start of a text; empty for anything else, a call among it.
std::string next_step(std::string_view text) {
  if (text.starts_with('.')) {
    const std::size_t end = end_of_name(text, 1);
    return end == 1 || text.substr(end).starts_with('(') ? std::string() : std::string(text.substr(0, end));
  }
  const std::size_t closing = text.starts_with('[') ? closing_of(text, 0) : text.npos;
  if (closing == text.npos) return "";
  std::string step(text.substr(0, closing + 1));
  for (char& quote : step) quote = quote == '"' ? '\'' : quote;
  return step;
}

// "[3]" and "['key']" for `[k]`, by what the variable is; the step as it is for any other.
std::string with_value(const void* frame, const std::string& step) {
  const std::string_view name = std::string_view(step).substr(1, step.size() - 2);
  const void* value =
      frame != nullptr && step.front() == '[' && is_identifier(name) ? variable_named(frame, name) : nullptr;
  char buffer[128];
  if (value != nullptr && is_text(value)) return "['" + std::string(text_of(value, buffer, sizeof buffer)) + "']";
  const std::optional<long> number = integer_in(value);
  return number ? "[" + std::to_string(*number) + "]" : step;
}

}  // namespace

std::optional<Place> variable_place(const void* frame, std::string_view name) {
  for (const bool globals : {false, true}) {
    WrittenLink variable(name);
    visit_frame(frame, globals, variable);
    if (variable.object() != nullptr) return Place{variable.object(), variable.found(), 0, 0, frame};
  }
  return std::nullopt;
}

void* variable_named(const void* frame, std::string_view name) {
  const auto place = variable_place(frame, name);
  return place ? place->object : nullptr;
}

std::size_t end_of_name(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_identifier(text.substr(begin, end + 1 - begin))) ++end;
  return end;
}

void* next_object(const void* frame, void* object, std::string_view& rest) {
  const std::string text = next_step(rest);
  if (text.empty()) return nullptr;
  const std::string link = with_value(frame, text);
  WrittenLink step(link);
  visit_links(object, step);
  rest.remove_prefix(text.size());
  return step.object();
}

void* object_behind(const void* frame, std::string_view path) {
  const std::size_t end = end_of_name(path, 0);
  void* object = end > 0 ? variable_named(frame, path.substr(0, end)) : nullptr;
  path.remove_prefix(end);
  while (object != nullptr && !path.empty()) object = next_object(frame, object, path);
  return object;
}

}  // namespace devsan::hooks
