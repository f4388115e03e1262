// YAML in the terms of JSON, as PyYAML's safe_load reads it (YAML 1.1): `yes` is true, `012` is ten.
#include <yaml.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "doctor/config/document.h"

namespace devsan::doctor {
namespace {

struct YamlError {
  std::string what;
};

class Parser {
 public:
  explicit Parser(std::string_view text) {
    if (yaml_parser_initialize(&parser_) == 0) throw YamlError{"cannot be read"};
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Parser() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  const yaml_event_t& next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      throw YamlError{"is not YAML at line " + std::to_string(parser_.problem_mark.line + 1) + ", column " +
                      std::to_string(parser_.problem_mark.column + 1)};
    }
    return event_;
  }

 private:
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<Json> whole_number(std::string text) {
  std::erase(text, '_');
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.starts_with("0b")) {
    base = 2;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits.starts_with('0')) {
    base = 8;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return Json(negative ? -value : value);
}

// PyYAML wants a dot in a number that is no whole one: 1e9 is text to it.
std::optional<Json> real_number(const std::string& text) {
  if (is_one_of(text, {".inf", "+.inf", ".Inf", "+.Inf"})) return Json(HUGE_VAL);
  const bool shaped = text.find('.') != std::string::npos && text.find_first_of("0123456789") != std::string::npos &&
                      text.find_first_not_of("0123456789.eE+-_") == std::string::npos;
  if (!shaped) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' ? std::optional(Json(value)) : std::nullopt;
}

Json scalar_of(const yaml_event_t& event) {
  const std::string text(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
  if (event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return text;
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  if (const std::optional<Json> number = whole_number(text)) return *number;
  if (const std::optional<Json> number = real_number(text)) return *number;
  return text;
}

// Builds the tree from the parser's events. An alias may make a file grow without bounds, so none is followed.
class Builder {
 public:
  Builder(std::string_view text, Document& document) : parser_(text), document_(document) {}

  Json root() {
    for (const yaml_event_t* event = &parser_.next();; event = &parser_.next()) {
      if (event->type == YAML_STREAM_END_EVENT) return {};
      if (event->type == YAML_STREAM_START_EVENT || event->type == YAML_DOCUMENT_START_EVENT) continue;
      return value(*event, 0, "");
    }
  }

 private:
  Json value(const yaml_event_t& event, int depth, const std::string& path) {
    if (depth > kMaxConfigDepth) throw YamlError{"is nested too deeply for a config"};
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        return scalar_of(event);
      case YAML_MAPPING_START_EVENT:
        return mapping(depth, path);
      case YAML_SEQUENCE_START_EVENT:
        return sequence(depth, path);
      case YAML_ALIAS_EVENT:
        throw YamlError{"has an alias, which is not followed here"};
      default:
        throw YamlError{"is not YAML that a config is made of"};
    }
  }

  Json mapping(int depth, const std::string& path) {
    Json object = Json::object();
    while (true) {
      const yaml_event_t& event = parser_.next();
      if (event.type == YAML_MAPPING_END_EVENT) return object;
      if (event.type != YAML_SCALAR_EVENT) throw YamlError{"has a key that is no text"};
      const std::string key(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
      const std::string inner = path.empty() ? key : path + "." + key;
      if (++keys_ > kMaxConfigKeys) throw YamlError{kTooManyKeys};
      if (object.contains(key)) document_.doubled.push_back(inner);
      object[key] = value(parser_.next(), depth + 1, inner);
    }
  }

  Json sequence(int depth, const std::string& path) {
    Json list = Json::array();
    while (true) {
      const yaml_event_t& event = parser_.next();
      if (event.type == YAML_SEQUENCE_END_EVENT) return list;
      list.push_back(value(event, depth + 1, path));
    }
  }

  Parser parser_;
  std::size_t keys_ = 0;
  Document& document_;
};

}  // namespace

Document parse_yaml_config(std::string name, std::string_view text) {
  Document document;
  document.name = std::move(name);
  try {
    document.value = Builder(text, document).root();
    if (!document.value.is_object()) document.error = "holds no object of keys and values";
  } catch (const YamlError& error) {
    document.error = error.what;
  }
  return document;
}

}  // namespace devsan::doctor
