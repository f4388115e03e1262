#include "hooks/inprocess/events/schema.h"

#include <algorithm>

namespace devsan::hooks {

namespace {

constexpr std::string_view kMetadata[] = {
#define DEVSAN_METADATA(name) #name,
#include "hooks/inprocess/events/metadata_operators.def"
#undef DEVSAN_METADATA
};

// The only questions about values that are answered by a bool.
constexpr std::string_view kComparisons[] = {"allclose", "equal", "is_nonzero"};

// A view by its schema. Python's tolist() asks for it right before it reads the memory, which is no operator.
// (numpy() asks for it as well, and is watched by itself: ThreadState::gives_away.)
constexpr std::string_view kBeforeReading = "resolve_neg";

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != text.npos;
}

template <std::size_t count>
bool is_one_of(std::string_view name, const std::string_view (&names)[count]) noexcept {
  return std::find(names, names + count, name) != names + count;
}

// "add_" of "aten::add_.Tensor(Tensor(a!) self, …"
std::string_view base_name(std::string_view schema) noexcept {
  const std::string_view name = schema.substr(0, schema.find_first_of(".("));
  const std::size_t colons = name.find("::");
  return colons == name.npos ? name : name.substr(colons + 2);
}

std::string_view returns_of(std::string_view schema) noexcept {
  const std::size_t arrow = schema.rfind(") -> ");
  return arrow == schema.npos ? std::string_view() : schema.substr(arrow + 5);
}

bool is_written(std::string_view argument) noexcept {
  return contains(argument, "!)") || contains(argument, "! -> ");
}

// "Tensor(a)", "Tensor(a -> *)", "Tensor(a)[]"; not "Tensor(a!)".
bool is_view(std::string_view type) noexcept {
  const std::size_t open = type.find("Tensor(");
  return open != type.npos && !is_written(type);
}

// A factory takes a device and says how to lay out memory there.
bool is_factory(std::string_view schema) noexcept {
  return contains(schema, "Device? device") && contains(schema, "pin_memory=");
}

}  // namespace

std::string_view argument_text(std::string_view schema, int argument) noexcept {
  std::size_t at = schema.find('(');
  int depth = 0;
  int found = 0;
  std::size_t start = at + 1;
  for (++at; at < schema.size(); ++at) {
    const char c = schema[at];
    if (c == '(' || c == '[') ++depth;
    const bool closes = c == ')' && depth == 0;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (!closes && !(c == ',' && depth == 0)) continue;
    std::string_view text = schema.substr(start, at - start);
    start = at + 1;
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text != "*" && found++ == argument) return text;
    if (closes) break;
  }
  return {};
}

std::string_view argument_name(std::string_view schema, int argument) noexcept {
  std::string_view text = argument_text(schema, argument);
  text = text.substr(0, text.find('='));
  const std::size_t space = text.rfind(' ');
  return space == text.npos ? text : text.substr(space + 1);
}

bool returns_view(std::string_view schema) noexcept {
  return is_view(returns_of(schema));
}

bool can_be_asynchronous(std::string_view schema) noexcept {
  return contains(schema, "non_blocking");
}

Access access_to(std::string_view schema, int argument) noexcept {
  const std::string_view name = base_name(schema);
  if (name == kBeforeReading) return Access::read;
  if (can_be_asynchronous(schema) || is_factory(schema) || returns_view(schema) || is_one_of(name, kMetadata)) {
    return Access::none;
  }
  const std::string_view text = argument_text(schema, argument);
  if (is_written(text)) return Access::write;
  if (!contains(text, "Tensor") || is_view(text)) return Access::none;
  const std::string_view returns = returns_of(schema);
  const bool computes = contains(returns, "Tensor") ||
                        (contains(returns, "Scalar") && !contains(returns, "ScalarType")) ||
                        (returns == "()" && contains(schema, "!)")) || is_one_of(name, kComparisons);
  return computes ? Access::read : Access::none;
}

}  // namespace devsan::hooks
