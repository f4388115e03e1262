#include "trace/options.h"

#include <charconv>
#include <cstdint>
#include <limits>

namespace devsan::trace {
namespace {

constexpr std::size_t kMaxComplaints = 10;
constexpr std::size_t kMaxQuoted = 60;
constexpr std::size_t kMinTraceSize = std::size_t{2} << 20;
constexpr std::size_t kMaxTraceSize = std::size_t{32} << 20;

// What the program's environment holds ends up on a terminal: only printable ASCII of it, and not much.
std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kMaxQuoted)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > kMaxQuoted) out += "...";
  return out + "'";
}

// Empty when the value was taken; otherwise what is wrong with it.
std::string assign(bool& option, std::string_view value) {
  if (value == "1" || value == "true") {
    option = true;
  } else if (value == "0" || value == "false") {
    option = false;
  } else {
    return "is not 0 or 1";
  }
  return {};
}

std::string assign(int& option, std::string_view value) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0) return "is not a whole number";
  option = number;
  return {};
}

std::string assign(std::string& option, std::string_view value) {
  option = value;
  return {};
}

// What the type of an option alone does not say.
std::string objection(std::string_view key, std::string_view value) {
  if (key != "sim_memory" && key != "trace_size") return {};
  const std::size_t size = parse_size(value);
  if (size == 0) return "is not a size such as 8G, 512M or 4096";
  if (key == "trace_size" && (size < kMinTraceSize || size > kMaxTraceSize)) return "is not between 2M and 32M";
  return {};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  ParsedOptions run() {
    while (!rest_.empty()) {
      if (rest_.front() == ':') {
        rest_.remove_prefix(1);
      } else {
        pair();
      }
    }
    if (unreported_ > 0) {
      parsed_.complaints.push_back("and " + std::to_string(unreported_) + " more invalid parts");
    }
    return std::move(parsed_);
  }

 private:
  void complain(std::string sentence) {
    if (parsed_.complaints.size() < kMaxComplaints) {
      parsed_.complaints.push_back(std::move(sentence));
    } else {
      ++unreported_;
    }
  }

  void pair() {
    const std::size_t key_end = rest_.find_first_of("=:");
    const std::string_view key = rest_.substr(0, key_end);
    rest_.remove_prefix(key.size());
    if (rest_.empty() || rest_.front() == ':') return complain(shown(key) + " has no value; write key=value");
    rest_.remove_prefix(1);
    std::string value;
    if (rest_.starts_with('"')) {
      if (!quoted(key, value)) return;
    } else {
      value = up_to_colon();
    }
    set(key, value);
  }

  std::string_view up_to_colon() {
    const std::string_view text = rest_.substr(0, rest_.find(':'));
    rest_.remove_prefix(text.size());
    return text;
  }

  // A quote that is never closed must not swallow the options after it.
  bool quoted(std::string_view key, std::string& value) {
    std::size_t at = 1;
    for (; at < rest_.size() && rest_[at] != '"'; ++at) {
      const bool escape = rest_[at] == '\\' && at + 1 < rest_.size() && (rest_[at + 1] == '"' || rest_[at + 1] == '\\');
      if (escape) ++at;
      value += rest_[at];
    }
    if (at >= rest_.size()) {
      up_to_colon();
      complain("the quote that opens the value of " + shown(key) + " is not closed");
      return false;
    }
    rest_.remove_prefix(at + 1);
    if (!rest_.empty() && rest_.front() != ':') {
      complain("expected ':' after the quoted value of " + shown(key) + ", found " + shown(up_to_colon()));
      return false;
    }
    return true;
  }

  void set(std::string_view key, std::string_view value) {
    std::string wrong = objection(key, value);
    bool known = false;
#define DEVSAN_OPTION(type, name, default_value, help)              \
  if (key == #name) {                                               \
    known = true;                                                   \
    if (wrong.empty()) wrong = assign(parsed_.options.name, value); \
  }
#include "trace/options.def"
#undef DEVSAN_OPTION
    if (!known) {
      complain("unknown option " + shown(key));
    } else if (!wrong.empty()) {
      complain("the value " + shown(value) + " of " + shown(key) + " " + wrong);
    }
  }

  std::string_view rest_;
  ParsedOptions parsed_;
  std::size_t unreported_ = 0;
};

std::string written(bool value) {
  return value ? "1" : "0";
}
std::string written(int value) {
  return std::to_string(value);
}

std::string written(const std::string& value) {
  if (value.find(':') == std::string::npos && !value.starts_with('"')) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

ParsedOptions parse_options(std::string_view text) {
  return Parser(text).run();
}

std::string format_options(const Options& options) {
  const Options defaults;
  std::string out;
#define DEVSAN_OPTION(type, name, default_value, help) \
  if (options.name != defaults.name) {                 \
    if (!out.empty()) out += ':';                      \
    out += #name "=" + written(options.name);          \
  }
#include "trace/options.def"
#undef DEVSAN_OPTION
  return out;
}

std::size_t parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || end - stop > 1) return 0;
  unsigned shift = 0;
  if (stop != end) {
    switch (*stop) {
      case 'K':
      case 'k':
        shift = 10;
        break;
      case 'M':
      case 'm':
        shift = 20;
        break;
      case 'G':
      case 'g':
        shift = 30;
        break;
      case 'T':
      case 't':
        shift = 40;
        break;
      default:
        return 0;
    }
  }
  if (number > (std::numeric_limits<std::size_t>::max() >> shift)) return 0;
  return static_cast<std::size_t>(number) << shift;
}

}  // namespace devsan::trace
