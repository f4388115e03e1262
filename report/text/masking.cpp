#include "report/text/masking.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "trace/secret_names.h"

namespace devsan::report {
namespace {

constexpr std::string_view kMask = "***";

bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_token_character(char c) {
  return is_in_word(c) || c == '-' || c == '.' || c == '/' || c == '+' || c == '=';
}

// Where the home directory that begins at `at` ends; `at` where there is none.
std::size_t end_of_home(std::string_view text, std::size_t at) {
  const bool begins = at == 0 || (!is_in_word(text[at - 1]) && text[at - 1] != '.' && text[at - 1] != '~');
  if (!begins) return at;
  const auto ends_path = [&](std::size_t end) {
    return end == text.size() || text[end] == '/' || !is_in_word(text[end]);
  };
  for (const std::string_view parent : {"/home/", "/Users/"}) {
    if (text.substr(at, parent.size()) != parent) continue;
    std::size_t end = at + parent.size();
    while (end < text.size() && (is_in_word(text[end]) || text[end] == '-' || text[end] == '.')) ++end;
    if (end > at + parent.size()) return end;
  }
  constexpr std::string_view kRoot = "/root";
  if (text.substr(at, kRoot.size()) == kRoot && ends_path(at + kRoot.size())) return at + kRoot.size();
  const char* const own = std::getenv("HOME");
  const std::string_view home = own == nullptr ? "" : own;
  if (home.size() > 1 && text.substr(at, home.size()) == home && ends_path(at + home.size())) return at + home.size();
  return at;
}

std::string without_homes(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '/' ? end_of_home(text, at) : at;
    if (end > at) {
      result += '~';
      at = end;
    } else {
      result += text[at++];
    }
  }
  return result;
}

// `https://ann:secret@host`: the password.
std::string without_passwords(std::string text) {
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const std::size_t begin = at + 3;
    const std::size_t end = std::min(text.find_first_of("/ \t\n'\"", begin), text.size());
    const std::size_t sign = text.rfind('@', end);
    const std::size_t colon = text.find(':', begin);
    if (sign == std::string::npos || sign < begin || colon == std::string::npos || colon > sign) continue;
    text.replace(colon + 1, sign - colon - 1, kMask);
  }
  return text;
}

// How tokens of well-known services begin, and how long they are at least.
struct TokenShape {
  std::string_view begin;
  std::size_t least;
};
constexpr std::array<TokenShape, 12> kTokens = {{{"hf_", 20},
                                                 {"ghp_", 20},
                                                 {"gho_", 20},
                                                 {"ghs_", 20},
                                                 {"github_pat_", 30},
                                                 {"glpat-", 20},
                                                 {"sk-", 20},
                                                 {"xoxb-", 20},
                                                 {"xoxp-", 20},
                                                 {"AKIA", 20},
                                                 {"pypi-", 30},
                                                 {"eyJ", 40}}};

std::string without_tokens(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !is_in_word(text[at - 1]);
    const auto shape = std::ranges::find_if(
        kTokens, [&](const TokenShape& one) { return text.substr(at, one.begin.size()) == one.begin; });
    std::size_t end = at;
    while (begins && shape != kTokens.end() && end < text.size() && is_token_character(text[end])) ++end;
    if (shape != kTokens.end() && end - at >= shape->least) {
      result += kMask;
      at = end;
    } else {
      result += text[at++];
    }
  }
  return result;
}

// Behind a name: past blanks, a closing quote of the name and one of `=` and `:`; 0 where no value is assigned.
std::size_t value_after(std::string_view text, std::size_t at) {
  const auto skip_blanks = [&] {
    while (at < text.size() && text[at] == ' ') ++at;
  };
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
  if (at < text.size() && text[at] == ']') ++at;
  skip_blanks();
  if (at >= text.size() || (text[at] != '=' && text[at] != ':')) return 0;
  ++at;
  skip_blanks();
  return at;
}

// `api_key = "…"`, `"token": '…'`, `PASSWORD=…`: a value in quotes, or in capitals' manner up to a blank.
std::string without_assigned(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && (is_in_word(text[end]) || text[end] == '-')) ++end;
    const std::string_view name = text.substr(at, end - at);
    if (name.empty()) {
      result += text[at++];
      continue;
    }
    result += name;
    at = end;
    if (!trace::names_secret(name)) continue;
    const std::size_t value = value_after(text, end);
    if (value == 0 || value >= text.size()) continue;
    const char quote = text[value];
    if (quote == '"' || quote == '\'') {
      const std::size_t close = std::min(text.find(quote, value + 1), text.size());
      result += std::string(text.substr(end, value + 1 - end)) + std::string(kMask);
      at = close;
    } else if (text[value - 1] == '=' && text.substr(end, value - end) == "=" &&
               std::ranges::none_of(name, [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; })) {
      result += "=" + std::string(kMask);
      at = std::min(text.find_first_of(" \t\n", value), text.size());
    }
  }
  return result;
}

}  // namespace

std::string masked(std::string_view text) {
  return without_assigned(without_tokens(without_passwords(without_homes(text))));
}

}  // namespace devsan::report
