#include "rules/rule.h"

#include <algorithm>
#include <array>

#include "rules/pattern.h"

namespace devsan::rules {
namespace {

constexpr std::string_view kOff = "off";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::optional<std::pair<std::int64_t, std::int64_t>> span_in(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = natural_number(trimmed(text.substr(0, dash)));
  if (!first) return std::nullopt;
  if (dash == text.npos) return std::pair(*first, *first);
  const std::string_view behind = trimmed(text.substr(dash + 1));
  const auto last = behind.empty() ? std::optional(kNoEnd) : natural_number(behind);
  if (!last || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

std::string without_separators(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return out;
}

bool holds(const Spans& spans, std::optional<std::int64_t> number) {
  return spans.empty() || (number && std::ranges::any_of(spans, [&](const auto& span) {
                             return *number >= span.first && *number <= span.second;
                           }));
}

bool meet(const Spans& spans, std::int64_t first, std::int64_t last) {
  return spans.empty() ||
         std::ranges::any_of(spans, [&](const auto& span) { return span.first <= last && span.second >= first; });
}

std::optional<Spans> parse_spans(std::string_view text) {
  Spans spans;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const auto span = span_in(trimmed(text.substr(begin, comma - begin)));
    if (!span) return std::nullopt;
    spans.push_back(*span);
    begin = comma + 1;
  }
  return spans;
}

std::string format_spans(const Spans& spans) {
  std::string text;
  for (const auto& [first, last] : spans) {
    if (!text.empty()) text += ", ";
    text += std::to_string(first);
    if (last == kNoEnd) {
      text += '-';
    } else if (last != first) {
      text += '-' + std::to_string(last);
    }
  }
  return text;
}

std::string compiled_line(const Rule& rule) {
  std::string line = "rule\t" + without_separators(rule.name) + '\t' + rule.sentence;
  for (const SpanKey& span : kSpanKeys) {
    const Spans& spans = rule.*span.member;
    if (!spans.empty()) line += '\t' + std::string(span.name) + '=' + format_spans(spans);
  }
  return line;
}

std::optional<Rule> rule_of_line(std::string_view file, int line, std::string_view compiled) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= compiled.size();) {
    const std::size_t tab = std::min(compiled.find('\t', begin), compiled.size());
    fields.push_back(compiled.substr(begin, tab - begin));
    begin = tab + 1;
  }
  if (fields.size() < 3 || fields[0] != "rule") return std::nullopt;
  Rule rule;
  rule.file = file;
  rule.line = line;
  rule.name = fields[1];
  if (parse_sentence(fields[2], rule)) return std::nullopt;
  for (std::size_t k = 3; k < fields.size(); ++k) {
    const std::size_t equals = fields[k].find('=');
    const auto known = std::ranges::find(kSpanKeys, fields[k].substr(0, equals), &SpanKey::name);
    const auto spans = equals != std::string_view::npos ? parse_spans(fields[k].substr(equals + 1)) : std::nullopt;
    if (known == kSpanKeys.end() || !spans) return std::nullopt;
    rule.*known->member = *spans;
  }
  return rule;
}

std::string compiled_off(std::string_view expectation) {
  return std::string(kOff) + '\t' + without_separators(expectation);
}

std::optional<std::string> off_of_line(std::string_view compiled) {
  if (!compiled.starts_with(kOff) || compiled.size() <= kOff.size() || compiled[kOff.size()] != '\t') {
    return std::nullopt;
  }
  return std::string(compiled.substr(kOff.size() + 1));
}

}  // namespace devsan::rules
