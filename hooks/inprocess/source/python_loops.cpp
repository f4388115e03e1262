#include "hooks/inprocess/source/python_loops.h"

#include <array>

#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

bool is_display(std::string_view text) {
  if (text.empty() || text.find(" for ") != text.npos) return false;
  const bool bracket = text.front() == '(' || text.front() == '[' || text.front() == '{';
  if (bracket && closing_of(text, 0) + 1 == text.size()) return true;
  const auto parts = arguments_at("(" + std::string(text) + ")", 0);
  return parts && parts->size() > 1;
}

std::string unwrapped(std::string_view text) {
  constexpr std::array<std::string_view, 4> kViews = {".values()", ".items()", ".keys()", ".copy()"};
  constexpr std::array<std::string_view, 6> kWrappers = {"list(", "tuple(", "enumerate(", "reversed(", "iter(", "set("};
  for (bool again = true; again;) {
    again = false;
    text = trimmed(text);
    for (const std::string_view view : kViews) {
      if (!text.ends_with(view)) continue;
      text.remove_suffix(view.size());
      again = true;
    }
    for (const std::string_view wrapper : kWrappers) {
      const std::size_t open = wrapper.size() - 1;
      if (!text.starts_with(wrapper) || closing_of(text, open) + 1 != text.size()) continue;
      text = text.substr(wrapper.size(), end_of_expression(text, wrapper.size()) - wrapper.size());
      again = true;
    }
  }
  return std::string(text);
}

std::string iterated(std::string_view statement) {
  std::string_view text = statement;
  const std::size_t loop = text.starts_with("for ") ? 0 : text.find(" for ");
  const std::size_t in = loop == text.npos ? text.npos : text.find(" in ", loop);
  if (in == text.npos) return "";
  text.remove_prefix(in + 4);
  if (loop == 0) {
    const std::size_t colon = text.rfind(':');
    return colon + 1 == text.size() ? std::string(text.substr(0, colon)) : std::string();
  }
  text = text.substr(0, end_of_expression(text, 0));
  return std::string(text.substr(0, text.find(" if ")));
}

}  // namespace devsan::hooks
