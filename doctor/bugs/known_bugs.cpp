#include "doctor/bugs/known_bugs.h"

#include <toml.hpp>

#include <stdexcept>

#include "doctor/embedded.h"

namespace devsan::doctor {
namespace {

[[noreturn]] void fail(const toml::source_region& where, const std::string& why) {
  throw std::runtime_error("known_bugs.toml:" + std::to_string(where.begin.line) + ":" +
                           std::to_string(where.begin.column) + ": " + why);
}

std::string text_of(const toml::table& entry, std::string_view key) {
  const toml::node* node = entry.get(key);
  if (node == nullptr) fail(entry.source(), "an entry has no " + std::string(key));
  const std::optional<std::string> text = node->value<std::string>();
  if (!text) fail(node->source(), std::string(key) + " is no text");
  return *text;
}

std::vector<Condition> conditions_of(const toml::table& entry) {
  std::vector<Condition> conditions;
  const toml::array* list = entry["when"].as_array();
  if (list == nullptr) return conditions;
  for (const toml::node& item : *list) {
    const std::optional<std::string> text = item.value<std::string>();
    if (!text) fail(item.source(), "a condition is no text");
    conditions.push_back(*text);
  }
  return conditions;
}

KnownBug bug_of(const toml::table& entry) {
  KnownBug bug;
  bug.library = text_of(entry, "library");
  bug.affected = text_of(entry, "affected");
  const std::optional<VersionRange> range = VersionRange::parse(bug.affected);
  if (!range) fail(entry.get("affected")->source(), "'" + bug.affected + "' is no range of versions");
  bug.range = *range;
  bug.needs = text_of(entry, "needs");
  bug.symptom = text_of(entry, "symptom");
  bug.cure = text_of(entry, "cure");
  bug.source = text_of(entry, "source");
  bug.certain = text_of(entry, "confidence") != "inferred";
  bug.enough = entry["enough"].value_or(false);
  bug.when = conditions_of(entry);
  return bug;
}

toml::table parsed_table(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(error.source(), std::string(error.description()));
  }
}

}  // namespace

std::vector<KnownBug> parse_known_bugs(std::string_view text) {
  const toml::table parsed = parsed_table(text);
  std::vector<KnownBug> bugs;
  const toml::array* entries = parsed["bug"].as_array();
  if (entries == nullptr) fail(parsed.source(), "there is no [[bug]]");
  for (const toml::node& entry : *entries) {
    if (!entry.is_table()) fail(entry.source(), "an entry is no table");
    bugs.push_back(bug_of(*entry.as_table()));
  }
  return bugs;
}

const std::vector<KnownBug>& known_bugs() {
  static const std::vector<KnownBug> bugs = parse_known_bugs(kKnownBugsToml);
  return bugs;
}

}  // namespace devsan::doctor
