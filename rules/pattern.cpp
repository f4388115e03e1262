#include "rules/pattern.h"

#include <algorithm>
#include <charconv>

namespace devsan::rules {
namespace {

bool begins_component(std::string_view name, std::size_t at) {
  return at == 0 || name[at - 1] == '.' || (at < name.size() && name[at] == '[');
}

bool ends_component(std::string_view name, std::size_t at) {
  return at == name.size() || name[at] == '.' || name[at] == '[';
}

}  // namespace

std::optional<std::int64_t> natural_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value >= 0 ? std::optional(value) : std::nullopt;
}

// Where one of the texts in braces is a range of numbers, all have to be numbers. False and an error where they are
// not.
bool Pattern::read_numbers(Token& token, std::size_t at, Error* error) {
  bool any_range = false;
  bool all_numbers = true;
  for (const std::string& text : token.alternatives) {
    const std::size_t dots = text.find("..");
    const std::size_t dash = dots != text.npos ? dots : text.find('-');
    const auto first = natural_number(text.substr(0, dash));
    const auto last = dash == text.npos ? first : natural_number(text.substr(dash + (dots != text.npos ? 2 : 1)));
    all_numbers = all_numbers && first && last;
    if (!first || !last) continue;
    any_range = any_range || dash != text.npos;
    if (dots != text.npos) {
      *error = {at, "a range of numbers is written {" + std::to_string(*first) + "-" + std::to_string(*last) + "}"};
      return false;
    }
    if (*first > *last) {
      *error = {at, "the numbers in braces go from a larger to a smaller one"};
      return false;
    }
    token.ranges.emplace_back(*first, *last);
  }
  if (!any_range) return true;
  if (!all_numbers) *error = {at, "a range of numbers stands beside texts in braces"};
  token.what = Token::What::numbers;
  return all_numbers;
}

std::optional<Pattern::Token> Pattern::parse_braces(std::string_view inside, std::size_t at, Error* error) {
  Token token{Token::What::alternatives};
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t comma = std::min(inside.find(',', begin), inside.size());
    token.alternatives.emplace_back(inside.substr(begin, comma - begin));
    begin = comma + 1;
  }
  const auto empty = [](const std::string& text) { return text.empty(); };
  if (std::ranges::any_of(token.alternatives, empty)) {
    *error = {at, "one of the texts in braces is empty"};
  } else if (token.alternatives.size() > kMaxAlternatives) {
    *error = {at, "more than " + std::to_string(kMaxAlternatives) + " texts in braces"};
  } else if (read_numbers(token, at, error)) {
    return token;
  }
  return std::nullopt;
}

std::optional<Pattern> Pattern::parse(std::string_view text, Error* error) {
  Pattern pattern;
  std::size_t braces = 0;
  if (text.empty() || text.size() > kMaxLength) {
    *error = {0, text.empty() ? "the pattern is empty" : "the pattern is longer than " + std::to_string(kMaxLength)};
    return std::nullopt;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '*' || c == '?') {
      const bool doubled = c == '*' && !pattern.tokens_.empty() && pattern.tokens_.back().what == Token::What::any;
      if (!doubled) pattern.tokens_.push_back({c == '*' ? Token::What::any : Token::What::one});
    } else if (c == '{') {
      const std::size_t end = text.find('}', at);
      const std::size_t inner = text.find('{', at + 1);
      if (end == text.npos || inner < end || ++braces > kMaxBraces) {
        *error = {at, end == text.npos ? "a brace is not closed"
                      : inner < end    ? "braces stand in braces"
                                       : "more than " + std::to_string(kMaxBraces) + " pairs of braces"};
        return std::nullopt;
      }
      auto token = parse_braces(text.substr(at + 1, end - at - 1), at, error);
      if (!token) return std::nullopt;
      pattern.tokens_.push_back(std::move(*token));
      at = end;
    } else if (c == '}') {
      *error = {at, "a brace is closed that was not opened"};
      return std::nullopt;
    } else if (!pattern.tokens_.empty() && pattern.tokens_.back().what == Token::What::text) {
      pattern.tokens_.back().text += c;
    } else {
      pattern.tokens_.push_back({Token::What::text, std::string(1, c)});
    }
  }
  return pattern;
}

// Which ends a token can reach from any of the places `from`.
void Pattern::advance(const Token& token, std::string_view name, const std::vector<char>& from, std::vector<char>& to) {
  const auto take = [&](std::size_t at, std::string_view text) {
    if (name.substr(at).starts_with(text)) to[at + text.size()] = 1;
  };
  bool open = false;
  for (std::size_t at = 0; at < from.size(); ++at) {
    open = open || from[at] != 0;
    if (token.what == Token::What::any && open) to[at] = 1;
    if (from[at] == 0) continue;
    if (token.what == Token::What::text) take(at, token.text);
    if (token.what == Token::What::one && at < name.size()) to[at + 1] = 1;
    if (token.what == Token::What::alternatives) {
      for (const std::string& text : token.alternatives) take(at, text);
    }
    if (token.what != Token::What::numbers) continue;
    std::size_t end = at;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    const auto value = natural_number(name.substr(at, end - at));
    const auto has = [&](const auto& range) { return *value >= range.first && *value <= range.second; };
    if (value && std::ranges::any_of(token.ranges, has)) to[end] = 1;
  }
}

bool Pattern::matches(std::string_view name) const {
  std::vector<char> places(name.size() + 1, 0);
  for (std::size_t at = 0; at < places.size(); ++at) places[at] = begins_component(name, at) ? 1 : 0;
  for (const Token& token : tokens_) {
    std::vector<char> next(places.size(), 0);
    advance(token, name, places, next);
    places.swap(next);
  }
  for (std::size_t at = 0; at < places.size(); ++at) {
    if (places[at] != 0 && ends_component(name, at)) return true;
  }
  return false;
}

}  // namespace devsan::rules
