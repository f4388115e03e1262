#include "report/program/literals.h"

#include <algorithm>
#include <charconv>

#include "report/program/source_file.h"

namespace devsan::program {
namespace {

std::string without_underscores(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

void append_utf8(std::string& text, std::uint32_t point) {
  const auto put = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | (point >> 18 & 7));
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

std::optional<std::uint32_t> number_in(std::string_view digits, int base) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// `escape` begins with the backslash. What Python keeps as it is, and names of characters, stay as written.
std::string resolved(std::string_view escape) {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"";
  static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char letter = escape.size() > 1 ? escape[1] : '\n';
  if (letter == '\n' || letter == '\r') return "";
  if (const auto at = kLetters.find(letter); at != std::string_view::npos) return std::string(1, kMeanings[at]);
  std::optional<std::uint32_t> point;
  if (letter == 'x' || letter == 'u' || letter == 'U') point = number_in(escape.substr(2), 16);
  if (letter >= '0' && letter <= '7') point = number_in(escape.substr(1), 8);
  if (!point) return std::string(escape);
  std::string text;
  append_utf8(text, *point);
  return text;
}

std::string prefix_of(Node string) {
  std::string prefix(string.first_child().text());
  prefix.erase(std::min(prefix.find_first_of("'\""), prefix.size()));
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return prefix;
}

bool has_prefix(Node node, std::string_view letters) {
  if (node.is(Kind::ConcatenatedString)) {
    const std::vector<Node> parts = node.children();
    return std::any_of(parts.begin(), parts.end(), [letters](Node part) { return has_prefix(part, letters); });
  }
  return node.is(Kind::String) && prefix_of(node).find_first_of(letters) != std::string::npos;
}

void append_content(std::string& text, Node content) {
  std::uint32_t at = content.begin_byte();
  const std::string_view source = content.file().text();
  for (const Node escape : content.children()) {
    text += source.substr(at, escape.begin_byte() - at);
    if (escape.is(Kind::EscapeSequence)) text += resolved(escape.text());
    if (escape.is(Kind::EscapeInterpolation)) text += escape.text().substr(1);
    at = escape.end_byte();
  }
  text += source.substr(at, content.end_byte() - at);
}

}  // namespace

std::optional<std::int64_t> integer_value(Node node) {
  if (node.is(Kind::UnaryOperator) && node.child(Field::Operator).text() == "-") {
    const auto value = integer_value(node.child(Field::Argument));
    return value ? std::optional(-*value) : std::nullopt;
  }
  if (!node.is(Kind::Integer)) return std::nullopt;
  std::string digits = without_underscores(node.text());
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && !(digits[1] >= '0' && digits[1] <= '9')) {
    base = digits[1] == 'x' || digits[1] == 'X' ? 16 : digits[1] == 'o' || digits[1] == 'O' ? 8 : 2;
    digits.erase(0, 2);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> number_value(Node node) {
  if (const auto integer = integer_value(node)) return static_cast<double>(*integer);
  if (node.is(Kind::UnaryOperator) && node.child(Field::Operator).text() == "-") {
    const auto value = number_value(node.child(Field::Argument));
    return value ? std::optional(-*value) : std::nullopt;
  }
  if (!node.is(Kind::Float)) return std::nullopt;
  const std::string digits = without_underscores(node.text());
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool is_string(Node node) {
  return node.is(Kind::String) || node.is(Kind::ConcatenatedString);
}

bool is_interpolated_string(Node node) {
  return has_prefix(node, "ft");
}

bool is_bytes(Node node) {
  return has_prefix(node, "b");
}

std::optional<std::string> string_value(Node node) {
  if (node.is(Kind::ParenthesizedExpression)) return string_value(node.only_child());
  if (!is_string(node) || is_bytes(node)) return std::nullopt;
  std::string text;
  if (node.is(Kind::ConcatenatedString)) {
    for (const Node part : node.children()) {
      const auto value = string_value(part);
      if (!value) return std::nullopt;
      text += *value;
    }
    return text;
  }
  const bool raw = prefix_of(node).find('r') != std::string::npos;
  for (const Node part : node.children()) {
    if (part.is(Kind::Interpolation)) return std::nullopt;
    if (!part.is(Kind::StringContent)) continue;
    if (raw) {
      text += part.text();
    } else {
      append_content(text, part);
    }
  }
  return text;
}

std::optional<bool> boolean_value(Node node) {
  if (node.is(Kind::True)) return true;
  if (node.is(Kind::False)) return false;
  return std::nullopt;
}

bool is_literal(Node node) {
  switch (node.kind()) {
    case Kind::True:
    case Kind::False:
    case Kind::NoneLiteral:
    case Kind::Integer:
    case Kind::Float:
    case Kind::Ellipsis:
      return true;
    case Kind::UnaryOperator:
      return number_value(node).has_value();
    default:
      return is_string(node) && !is_interpolated_string(node);
  }
}

}  // namespace devsan::program
