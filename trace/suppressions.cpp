#include "trace/suppressions.h"

#include <utility>

namespace devsan::trace {
namespace {

constexpr std::size_t kMaxComplaints = 20;
constexpr std::size_t kMaxQuoted = 60;
constexpr std::string_view kBlank = " \t";

// A file of any kind may have been named: only printable ASCII of it reaches a terminal, and not much.
std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kMaxQuoted)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > kMaxQuoted) out += "...";
  return out + "'";
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// One line in words. A word ends at a blank outside double quotes; a comment begins at a `#` that begins a word.
class Words {
 public:
  explicit Words(std::string_view line) : line_(line) {}

  // False at the end of the line, and at a quote that is never closed.
  bool next(std::string& word) {
    word.clear();
    const std::size_t begin = line_.find_first_not_of(kBlank, at_);
    if (begin == line_.npos || line_[begin] == '#') {
      if (begin != line_.npos) comment_ = trimmed(line_.substr(begin + 1));
      at_ = line_.size();
      return false;
    }
    bool quoted = false;
    for (at_ = begin; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '"') {
        quoted = !quoted;
      } else if (!quoted && kBlank.find(c) != kBlank.npos) {
        break;
      } else {
        word += c;
      }
    }
    end_ = at_;
    open_quote_ = quoted;
    return !quoted;
  }

  bool open_quote() const { return open_quote_; }
  std::string_view comment() const { return comment_; }
  std::string_view text() const { return trimmed(line_.substr(0, end_)); }  // of all words so far

 private:
  std::string_view line_;
  std::string_view comment_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  bool open_quote_ = false;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  ParsedSuppressions run() {
    if (rest_.size() > kMaxSuppressionBytes) {
      complain(0, "is larger than " + std::to_string(kMaxSuppressionBytes >> 10) + " KiB");
      return std::move(parsed_);
    }
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);  // editors on Windows begin a file with it
    for (int number = 1; !rest_.empty(); ++number) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      take(number, line);
    }
    if (unreported_ > 0) complain(0, "has " + std::to_string(unreported_) + " more invalid lines", true);
    return std::move(parsed_);
  }

 private:
  void complain(int line, std::string sentence, bool always = false) {
    if (always || parsed_.complaints.size() < kMaxComplaints) {
      parsed_.complaints.push_back({line, std::move(sentence)});
    } else {
      ++unreported_;
    }
  }

  void take(int number, std::string_view line) {
    Words words(line);
    std::string word;
    if (!words.next(word)) {
      if (words.open_quote()) return complain(number, "a quote is not closed");
      note_comment(words.comment(), trimmed(line).empty());
      return;
    }
    Suppression entry;
    entry.line = number;
    std::string wrong = take_kinds(word, entry);
    while (wrong.empty() && words.next(word)) wrong = take_condition(word, entry);
    if (wrong.empty() && words.open_quote()) wrong = "a quote is not closed";
    const bool everything = entry.op.empty() && entry.file.empty() && entry.function.empty();
    if (wrong.empty() && entry.kinds == kAllKinds && everything) wrong = "this would suppress every finding";
    const std::string above = std::exchange(above_, {});
    if (!wrong.empty()) return complain(number, std::move(wrong));
    if (parsed_.entries.size() == kMaxSuppressions) {
      return complain(number, "exceeds the limit of " + std::to_string(kMaxSuppressions) + " entries");
    }
    entry.text = words.text();
    entry.reason = words.comment().empty() ? above : std::string(words.comment());
    parsed_.entries.push_back(std::move(entry));
  }

  // Comments above an entry are its reason, as far up as the next line that is empty or an entry.
  void note_comment(std::string_view comment, bool blank) {
    if (blank) return above_.clear();
    if (!above_.empty() && !comment.empty()) above_ += ' ';
    above_ += comment;
  }

  static std::string take_kinds(std::string_view word, Suppression& entry) {
    for (bool more = true; more;) {
      const std::size_t comma = word.find(',');
      const std::string_view name = word.substr(0, comma);
      if (name == "any") {
        entry.kinds = kAllKinds;
      } else if (const auto kind = kind_named(name)) {
        entry.kinds |= set_of(*kind);
      } else {
        return "unknown kind " + shown(name) + "; known kinds: " + known_kinds();
      }
      more = comma != word.npos;
      if (more) word.remove_prefix(comma + 1);
    }
    return {};
  }

  static std::string take_condition(std::string_view word, Suppression& entry) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return shown(word) + " is not a condition; write op=…, file=… or function=…";
    const std::string_view key = word.substr(0, equals);
    const std::string_view pattern = word.substr(equals + 1);
    std::string* const place = key == "op"         ? &entry.op
                               : key == "file"     ? &entry.file
                               : key == "function" ? &entry.function
                                                   : nullptr;
    if (place == nullptr) return "unknown condition " + shown(key) + "; known conditions: op, file, function";
    if (pattern.empty()) return std::string(key) + "= has no pattern";
    if (!place->empty()) return std::string(key) + "= is given twice";
    *place = pattern;
    return {};
  }

  static std::string known_kinds() {
    std::string text = "any";
    for (const FindingKind kind : kFindingKinds) text.append(", ").append(kind_name(kind));
    return text;
  }

  std::string_view rest_;
  std::string above_;
  ParsedSuppressions parsed_;
  std::size_t unreported_ = 0;
};

// "aten::add.Tensor" is also "aten::add".
bool matches_op(std::string_view pattern, std::string_view op) noexcept {
  return matches_pattern(pattern, op) || matches_pattern(pattern, op.substr(0, op.find('.')));
}

// "train.py" and "models/*.py" may begin at any folder; what begins with `/` or `*` is the whole path.
bool matches_file(std::string_view pattern, std::string_view file) noexcept {
  if (matches_pattern(pattern, file)) return true;
  if (pattern.starts_with('/') || pattern.starts_with('*')) return false;
  for (std::size_t slash = file.find('/'); slash != file.npos; slash = file.find('/', slash + 1)) {
    if (matches_pattern(pattern, file.substr(slash + 1))) return true;
  }
  return false;
}

// "Trainer.step" is also "step".
bool matches_function(std::string_view pattern, std::string_view function) noexcept {
  const std::size_t dot = function.rfind('.');
  return matches_pattern(pattern, function) ||
         (dot != function.npos && matches_pattern(pattern, function.substr(dot + 1)));
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = pattern.npos;  // the last one met, and where the text went on behind what it stands for
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Suppression::matches(const FindingPlace& place) const noexcept {
  const auto fits = [](const std::string& pattern, std::string_view part, auto match) {
    return pattern.empty() || (!part.empty() && match(pattern, part));
  };
  return (kinds & set_of(place.kind)) != 0 && fits(op, place.op, matches_op) && fits(file, place.file, matches_file) &&
         fits(function, place.function, matches_function);
}

ParsedSuppressions parse_suppressions(std::string_view text) {
  return Parser(text).run();
}

}  // namespace devsan::trace
