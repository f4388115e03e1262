// Versions of Python packages and ranges of them, as PEP 440 orders and matches them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devsan::doctor {

struct Version {
  std::uint64_t epoch = 0;
  std::vector<std::uint64_t> release;                 // 1.13.0
  std::optional<std::pair<char, std::uint64_t>> pre;  // 'a', 'b' or 'c' (rc) with its number
  std::optional<std::uint64_t> post;
  std::optional<std::uint64_t> dev;
  std::vector<std::string> local;  // "cu121"

  bool is_prerelease() const { return pre || dev; }
};

// Nothing where the text is no version by PEP 440.
std::optional<Version> parse_version(std::string_view text);

// Trailing zeros of a release do not count, as PEP 440 says.
std::weak_ordering compare(const Version& a, const Version& b);

// A set of specifiers such as ">=0.15.4,<0.16.2" or "==1.3.*".
class VersionRange {
 public:
  static std::optional<VersionRange> parse(std::string_view text);

  // Pre-releases may match, as a bug does not wait for a release.
  bool contains(const Version& version) const;

 private:
  enum class Operator { equal, not_equal, less, less_equal, greater, greater_equal, compatible };
  struct Specifier {
    Operator op;
    Version version;
    bool any_suffix = false;  // "==1.3.*"
  };
  static std::optional<Specifier> parse_specifier(std::string_view text);
  static bool matches(const Specifier& specifier, const Version& version);

  std::vector<Specifier> specifiers_;
};

}  // namespace devsan::doctor
