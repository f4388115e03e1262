#include "doctor/versions/pep440.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace devsan::doctor {
namespace {

std::string lower_without_blanks(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads a version from left to right; what is left over makes it no version.
class VersionParser {
 public:
  explicit VersionParser(std::string_view text) : rest_(text) {}

  std::optional<Version> parse() {
    take('v');
    if (!read_release() || !read_pre() || !read_post() || !read_dev() || !read_local() || !rest_.empty()) {
      return std::nullopt;
    }
    return version_;
  }

 private:
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<std::uint64_t> number() {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  bool read_release() {
    std::optional<std::uint64_t> part = number();
    if (!part) return false;
    if (take('!')) {
      version_.epoch = *part;
      part = number();
      if (!part) return false;
    }
    version_.release.push_back(*part);
    while (rest_.size() > 1 && rest_[0] == '.' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      part = number();
      if (!part) return false;
      version_.release.push_back(*part);
    }
    return true;
  }

  // One of the words, perhaps after a separator; which one, or nothing, and then nothing is taken.
  template <std::size_t N>
  std::optional<std::size_t> word(const std::array<std::string_view, N>& words) {
    std::string_view after = rest_;
    if (!after.empty() && (after[0] == '.' || after[0] == '-' || after[0] == '_')) after.remove_prefix(1);
    for (std::size_t i = 0; i < N; ++i) {
      if (!after.starts_with(words[i])) continue;
      rest_ = after.substr(words[i].size());
      return i;
    }
    return std::nullopt;
  }

  // The number after such a word, which may lack and is then 0.
  std::uint64_t number_after_word() {
    const std::string_view before = rest_;
    if (!rest_.empty() && (rest_[0] == '.' || rest_[0] == '-' || rest_[0] == '_')) rest_.remove_prefix(1);
    if (const std::optional<std::uint64_t> found = number()) return *found;
    rest_ = before;
    return 0;
  }

  bool read_pre() {
    constexpr std::array<std::string_view, 8> kWords = {"alpha", "beta", "preview", "pre", "rc", "a", "b", "c"};
    constexpr std::string_view kKinds = "abcccabc";
    if (const std::optional<std::size_t> at = word(kWords)) version_.pre = {kKinds[*at], number_after_word()};
    return true;
  }

  bool read_post() {
    constexpr std::array<std::string_view, 3> kWords = {"post", "rev", "r"};
    if (rest_.size() > 1 && rest_[0] == '-' && is_digit(rest_[1])) {  // 1.0-1
      rest_.remove_prefix(1);
      version_.post = number();
      return version_.post.has_value();
    }
    if (word(kWords)) version_.post = number_after_word();
    return true;
  }

  bool read_dev() {
    constexpr std::array<std::string_view, 1> kWords = {"dev"};
    if (word(kWords)) version_.dev = number_after_word();
    return true;
  }

  bool read_local() {
    if (!take('+')) return true;
    std::string part;
    for (const char c : std::string(rest_) + '.') {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
        part += c;
      } else if (part.empty() || (c != '.' && c != '-' && c != '_')) {
        return false;
      } else {
        version_.local.push_back(std::exchange(part, {}));
      }
    }
    rest_ = {};
    return true;
  }

  std::string_view rest_;
  Version version_;
};

std::weak_ordering compare_release(const Version& a, const Version& b) {
  for (std::size_t i = 0; i < std::max(a.release.size(), b.release.size()); ++i) {
    const std::uint64_t left = i < a.release.size() ? a.release[i] : 0;
    const std::uint64_t right = i < b.release.size() ? b.release[i] : 0;
    if (left != right) return left <=> right;
  }
  return std::weak_ordering::equivalent;
}

// 1.0.dev1 < 1.0a1 < 1.0: where the pre-release stands in the order of one release.
std::pair<int, std::uint64_t> pre_key(const Version& version) {
  if (version.pre) return {version.pre->first, version.pre->second};
  const bool only_dev = version.dev && !version.post;
  return {only_dev ? 0 : 127, 0};
}

bool is_number(std::string_view text) {
  return std::ranges::all_of(text, is_digit);
}

std::weak_ordering compare_local_part(const std::string& a, const std::string& b) {
  if (is_number(a) != is_number(b)) return is_number(b) ? std::weak_ordering::less : std::weak_ordering::greater;
  if (is_number(a) && a.size() != b.size()) return a.size() <=> b.size();
  return a <=> b;
}

std::weak_ordering compare_local(const Version& a, const Version& b) {
  for (std::size_t i = 0; i < std::min(a.local.size(), b.local.size()); ++i) {
    const std::weak_ordering order = compare_local_part(a.local[i], b.local[i]);
    if (order != 0) return order;
  }
  return a.local.size() <=> b.local.size();
}

Version without_local(Version version) {
  version.local.clear();
  return version;
}

// Whether the release begins with that of `prefix`: 1.3.7 with 1.3.
bool begins_with(const Version& version, const Version& prefix) {
  if (version.epoch != prefix.epoch) return false;
  for (std::size_t i = 0; i < prefix.release.size(); ++i) {
    if ((i < version.release.size() ? version.release[i] : 0) != prefix.release[i]) return false;
  }
  return true;
}

bool same_release(const Version& a, const Version& b) {
  return a.epoch == b.epoch && compare_release(a, b) == 0;
}

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  const std::string lower = lower_without_blanks(text);
  return VersionParser(lower).parse();
}

std::weak_ordering compare(const Version& a, const Version& b) {
  if (a.epoch != b.epoch) return a.epoch <=> b.epoch;
  if (const auto order = compare_release(a, b); order != 0) return order;
  if (const auto order = pre_key(a) <=> pre_key(b); order != 0) return order;
  if (a.post != b.post) return a.post <=> b.post;  // none is less than any
  if (a.dev.has_value() != b.dev.has_value()) return a.dev ? std::weak_ordering::less : std::weak_ordering::greater;
  if (a.dev != b.dev) return a.dev <=> b.dev;
  return compare_local(a, b);
}

std::optional<VersionRange::Specifier> VersionRange::parse_specifier(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Operator>, 7> kOperators = {{{"==", Operator::equal},
                                                                                {"!=", Operator::not_equal},
                                                                                {"<=", Operator::less_equal},
                                                                                {">=", Operator::greater_equal},
                                                                                {"~=", Operator::compatible},
                                                                                {"<", Operator::less},
                                                                                {">", Operator::greater}}};
  const std::string trimmed = lower_without_blanks(text);
  for (const auto& [sign, op] : kOperators) {
    if (!trimmed.starts_with(sign)) continue;
    std::string_view rest = std::string_view(trimmed).substr(sign.size());
    const bool any_suffix = rest.ends_with(".*");
    if (any_suffix) rest.remove_suffix(2);
    const std::optional<Version> version = parse_version(rest);
    const bool suffix_allowed = op == Operator::equal || op == Operator::not_equal;
    if (!version || (any_suffix && !suffix_allowed)) return std::nullopt;
    if (op == Operator::compatible && version->release.size() < 2) return std::nullopt;
    return Specifier{op, *version, any_suffix};
  }
  return std::nullopt;
}

std::optional<VersionRange> VersionRange::parse(std::string_view text) {
  VersionRange range;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::optional<Specifier> specifier = parse_specifier(text.substr(0, comma));
    if (!specifier) return std::nullopt;
    range.specifiers_.push_back(*specifier);
    if (comma == text.size()) return range;
    text.remove_prefix(comma + 1);
  }
}

bool VersionRange::matches(const Specifier& specifier, const Version& version) {
  const Version& wanted = specifier.version;
  const Version plain = without_local(version);
  const bool equal = specifier.any_suffix ? begins_with(version, wanted)
                                          : compare(wanted.local.empty() ? plain : version, wanted) == 0;
  switch (specifier.op) {
    case Operator::equal:
      return equal;
    case Operator::not_equal:
      return !equal;
    case Operator::less_equal:
      return compare(plain, wanted) <= 0;
    case Operator::greater_equal:
      return compare(plain, wanted) >= 0;
    case Operator::less:  // 1.0rc1 is no version before 1.0 in this sense
      return compare(version, wanted) < 0 &&
             !(version.is_prerelease() && !wanted.is_prerelease() && same_release(version, wanted));
    case Operator::greater:  // nor is 1.0.post1 or 1.0+cpu one after it
      return compare(version, wanted) > 0 && !(version.post && !wanted.post && same_release(version, wanted)) &&
             !(!version.local.empty() && same_release(version, wanted));
    case Operator::compatible: {
      Version prefix;
      prefix.epoch = wanted.epoch;
      prefix.release.assign(wanted.release.begin(), wanted.release.end() - 1);
      return compare(plain, wanted) >= 0 && begins_with(version, prefix);
    }
  }
  return false;
}

bool VersionRange::contains(const Version& version) const {
  return std::ranges::all_of(specifiers_, [&](const Specifier& specifier) { return matches(specifier, version); });
}

}  // namespace devsan::doctor
