#include "doctor/config/key_values.h"

#include <algorithm>
#include <array>

#include "doctor/config/deepspeed.h"
#include "doctor/near_miss.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

// The words that pydantic and accelerate take for true and false, in capitals or not.
bool is_truth_word(const std::string& text) {
  constexpr std::array<std::string_view, 12> kWords = {"true", "false", "yes", "no", "on", "off",
                                                       "1",    "0",     "t",   "f",  "y",  "n"};
  return std::ranges::find(kWords, lower(text)) != kWords.end();
}

bool is_digits(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool fits_bool(const KeyInfo& info, const Json& value) {
  if (value.is_string()) return info.reading != Reading::plain && is_truth_word(value.get<std::string>());
  return value.is_boolean() || (value.is_number() && (value == 0 || value == 1));
}

// 5e8 is a whole number except in a text, and so is "16" where something converts it.
bool fits_int(const KeyInfo& info, const Json& value) {
  if (info.reading == Reading::text) return is_digits(python_text(value));
  if (value.is_boolean()) return true;
  if (value.is_string()) return info.reading == Reading::converted && is_digits(value.get<std::string>());
  return whole_number(&value).has_value();
}

bool fits_float(const KeyInfo& info, const Json& value) {
  if (value.is_boolean()) return info.reading != Reading::text;
  return value.is_number() || (info.reading != Reading::plain && number(&value).has_value());
}

bool fits_enum(const KeyInfo& info, const Json& value) {
  return std::ranges::any_of(info.values, [&](const Json& known) {
    if (info.reading == Reading::converted && known.is_number()) {
      return fits_int(info, value) && whole_number(&value).value_or(value == true) == known;
    }
    if (info.reading == Reading::plain && !value.is_string()) return known == value;
    if (info.reading == Reading::converted) return known == value;
    const std::string text = python_text(value);
    return info.any_case ? lower(text) == lower(python_text(known)) : text == python_text(known);
  });
}

std::vector<std::string> words_of(const KeyInfo& info) {
  std::vector<std::string> words;
  for (const Json& value : info.values) {
    if (value.is_string()) words.push_back(value.get<std::string>());
  }
  return words;
}

// "true or false", "one of A and B"
std::string wanted(const KeyInfo& info) {
  static const std::map<std::string, std::string> names = {
      {"bool", "true or false"}, {"truth", "true or false"},  {"int", "a whole number"},
      {"float", "a number"},     {"str", "a text in quotes"}, {"section", "an object of keys and values"}};
  if (info.type != "enum") {
    const bool quotes = info.reading == Reading::plain && info.type != "str";
    return names.at(info.type) + (quotes ? " without quotes" : "");
  }
  std::vector<std::string> words;
  const bool named = !words_of(info).empty();
  for (const Json& value : info.values) {
    // A name says more than the number that stands for it.
    if (!named || value.is_string()) words.push_back(shown(value));
  }
  return "one of " + listed(words);
}

}  // namespace

std::string python_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool fits(const KeyInfo& info, const Json& value) {
  if (value.is_string() && has_word(info.words, value.get<std::string>())) return true;
  if (info.type == "bool") return fits_bool(info, value);
  if (info.type == "truth") return !value.is_string() || is_true(&value);
  if (info.type == "int") return fits_int(info, value);
  if (info.type == "float") return fits_float(info, value);
  if (info.type == "str") return value.is_string();
  if (info.type == "section") return value.is_object();
  if (info.type == "enum") return fits_enum(info, value);
  return true;
}

std::string broken_bound(const KeyInfo& info, const Json& value) {
  const std::optional<double> found = number(&value);
  if (!found) return {};
  if (info.at_least && *found < *info.at_least) return "at least " + shown(Json(*info.at_least));
  if (info.above && *found <= *info.above) return "more than " + shown(Json(*info.above));
  if (info.at_most && *found > *info.at_most) return "at most " + shown(Json(*info.at_most));
  return {};
}

std::string cure_for(const KeyInfo& info, const Json& value) {
  const std::vector<std::string> words = words_of(info);
  const std::string guess = value.is_string() ? likely_meant(value.get<std::string>(), words) : std::string();
  return guess.empty() ? "Write " + wanted(info) + "." : "Did you mean " + guess + "?";
}

}  // namespace devsan::doctor
