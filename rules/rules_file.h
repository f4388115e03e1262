// Files of rules, in TOML. docs/rules.md says how they are written, rules/rules.schema.json what may be in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rules/rule.h"

namespace devsan::rules {

struct Complaint {
  std::string file;
  int line = 0;  // 0: the file as a whole
  int column = 0;
  std::string text;

  std::string sentence() const;  // "rules.toml:3:10: …"
};

struct RulesFile {
  std::vector<Rule> rules;
  std::vector<std::string> off;  // built-in expectations that are not judged
  std::vector<Complaint> complaints;
};

inline constexpr std::size_t kMaxRulesBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxRules = 2000;

// With the files that it includes. Never throws for any file.
RulesFile read_rules(const std::filesystem::path& path);

// The names of all built-in expectations.
std::vector<std::string> expectations();

// What a process is given (trace/compiled_rules.h).
std::string compiled(const RulesFile& file, const std::filesystem::path& path);

}  // namespace devsan::rules
