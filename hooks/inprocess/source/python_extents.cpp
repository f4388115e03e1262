#include "hooks/inprocess/source/python_extents.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "hooks/inprocess/source/python_keywords.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

using trace::is_word;

constexpr std::size_t kMaxParts = 48;
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kNowhere = std::string_view::npos;

// These run code that their text does not have, or some in another order.
constexpr std::array<std::string_view, 4> kOtherStatements = {"assert", "async", "class", "def"};

// After these a block begins behind a colon; after any other word, an annotation does.
constexpr std::array<std::string_view, 9> kBlocks = {"elif", "else",  "except", "finally", "for",
                                                     "if",   "while", "with",   "try"};

template <std::size_t size>
bool among(const std::array<std::string_view, size>& words, std::string_view word) noexcept {
  return std::ranges::find(words, word) != words.end();
}

struct Span {
  std::size_t begin = kNowhere;
  std::size_t end = 0;
  SourcePart part = SourcePart::call;
  bool within(std::size_t from, std::size_t to) const noexcept { return begin >= from && end <= to; }
};

// All parts of a statement, in the order in which they end.
class Parts {
 public:
  explicit Parts(std::string_view text) noexcept : text_(text) { understood_ = read(); }

  // None where it is not certain that there are `count`, and which is which.
  std::optional<Span> of(Caller caller, SourcePart part, int rank, int count) const noexcept {
    if (!understood_ || rank < 0 || rank >= count) return std::nullopt;
    if (part != SourcePart::call && formats_subscript_) return std::nullopt;
    const bool inside = caller != Caller::function;
    const bool in_loop = caller == Caller::comprehension;
    if (inside && (in_loop ? loop_ : body_).begin == kNowhere) return std::nullopt;
    int met = 0;
    bool ordered = ordered_;
    std::optional<Span> found;
    for (std::size_t k = 0; k < count_; ++k) {
      if (parts_[k].part != part || runs_inside(parts_[k]) != inside) continue;
      if (met++ == rank) found = parts_[k];
      // A comprehension takes its value last, although that is written first, and so does an assignment.
      const bool before_value = part != SourcePart::store && parts_[k].end <= stored_;
      ordered = ordered && (!in_loop || parts_[k].end <= for_) && !before_value;
    }
    return met == count && (ordered || count == 1) ? found : std::nullopt;
  }

 private:
  struct Level {
    std::size_t open = 0;
    std::size_t primary = kNowhere;  // where the expression before what comes next begins; nowhere behind an operator
    std::optional<SourcePart> part;  // that its bracket ends
    bool loops = false;
  };

  // The body of a lambda, or all of a comprehension but the first of what it goes through.
  bool runs_inside(const Span& part) const noexcept {
    if (body_.begin != kNowhere) return part.within(body_.begin, body_.end);
    if (loop_.begin == kNowhere || part.begin == loop_.begin || !part.within(loop_.begin, loop_.end)) return false;
    return !part.within(in_, first_end_);
  }

  bool read() noexcept {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        if (!pass_string()) return false;
      } else if (is_word(c)) {
        if (!pass_word()) return false;
      } else if (c == '(' || c == '[' || c == '{') {
        if (!open()) return false;
      } else if (c == ')' || c == ']' || c == '}') {
        if (!close()) return false;
      } else {
        pass_other(c);
      }
    }
    end_body(0);
    return depth_ == 0 && !matches_;
  }

  bool pass_string() noexcept {
    int lines = 0;
    const std::size_t begin = at_;
    at_ = end_of_string(text_, at_, lines);
    if (at_ == text_.npos) return false;
    Level& level = levels_[depth_];
    if (level.primary == kNowhere) level.primary = begin;
    // What is called or read inside of it is not looked for.
    if (!is_formatted(text_, begin)) return true;
    const std::string_view string = text_.substr(begin, at_ - begin);
    formats_subscript_ = formats_subscript_ || string.find('[') != string.npos;
    return string.find('(') == string.npos;
  }

  bool pass_word() noexcept {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (begin == 0) first_word_ = word;
    Level& level = levels_[depth_];
    if (begin == 0 && among(kOtherStatements, word)) return false;
    if (!is_python_keyword(word)) {
      if (level.primary == kNowhere) level.primary = begin;
      return true;
    }
    level.primary = kNowhere;
    if (word == "lambda") return enter_lambda();
    const bool in_loop = level.loops && depth_ == loop_depth_;
    if (word == "for" && depth_ > 0 && !level.loops) return enter_loop(begin);
    if (in_loop && word == "in" && in_ == kNowhere) in_ = at_;
    if (in_loop && in_ != kNowhere && (word == "for" || word == "if" || word == "async")) end_first(begin);
    if (word == "if" && begin != 0 && !in_loop) ordered_ = false;
    return true;
  }

  // One function in a statement is enough to follow.
  bool enter_lambda() noexcept {
    if (lambda_ || loop_.begin != kNowhere) return false;
    lambda_ = true;
    lambda_depth_ = depth_;
    return true;
  }

  void end_body(std::size_t depth) noexcept {
    if (body_.begin != kNowhere && body_.end == kNowhere && depth == lambda_depth_) body_.end = at_;
  }

  bool enter_loop(std::size_t begin) noexcept {
    if (lambda_ || loop_.begin != kNowhere) return false;
    levels_[depth_].loops = true;
    loop_depth_ = depth_;
    loop_.begin = levels_[depth_].open;
    loop_.end = text_.size();
    for_ = begin;
    return true;
  }

  void end_first(std::size_t end) noexcept {
    if (first_end_ == kNowhere) first_end_ = end;
  }

  bool open() noexcept {
    Level& around = levels_[depth_];
    std::optional<SourcePart> part;
    if (around.primary != kNowhere && text_[at_] == '(') part = SourcePart::call;
    if (around.primary != kNowhere && text_[at_] == '[') part = SourcePart::read;
    if (around.primary == kNowhere) around.primary = at_;
    if (++depth_ == kMaxDepth) return false;
    levels_[depth_] = {at_++, kNowhere, part, false};
    return true;
  }

  bool close() noexcept {
    if (depth_ == 0) return false;
    end_body(depth_);
    const Level closed = levels_[depth_--];
    ++at_;
    if (closed.loops) {
      end_first(at_ - 1);
      loop_.end = at_;
      if (!add({closed.open, at_, SourcePart::call})) return false;
    }
    return !closed.part || add({levels_[depth_].primary, at_, *closed.part});
  }

  bool add(const Span& part) noexcept {
    if (count_ == parts_.size()) return false;
    parts_[count_++] = part;
    return true;
  }

  // What stands before the sign of equality is stored, where that is one subscript alone, and no annotation.
  void end_target() noexcept {
    stored_ = at_;
    if (!ordered_ || count_ == 0 || parts_[count_ - 1].part != SourcePart::read) return;
    Span& last = parts_[count_ - 1];
    const bool ends_here = text_.substr(last.end, at_ - last.end).find_first_not_of(" \t\\\r\n") == text_.npos;
    if (ends_here) last.part = SourcePart::store;
  }

  void pass_other(char c) noexcept {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\\';
    if (!blank && c != '.') levels_[depth_].primary = kNowhere;
    if (depth_ == 0 && c == '=' && stores()) end_target();
    if (c == ',') end_body(depth_);
    if (c == ':' && lambda_ && body_.begin == kNowhere && depth_ == lambda_depth_) {
      body_ = {at_, kNowhere};
    } else if (c == ':' && depth_ == 0 && !among(kBlocks, first_word_)) {
      ordered_ = false;
      matches_ = matches_ || first_word_ == "match" || first_word_ == "case";
    }
    ++at_;
  }

  // Whether the sign of equality is that of an assignment, which takes its value first.
  bool stores() const noexcept {
    const char before = at_ > 0 ? text_[at_ - 1] : '=';
    const char behind = at_ + 1 < text_.size() ? text_[at_ + 1] : '=';
    return behind != '=' && std::string_view("=!<>+-*/|&^%@:").find(before) == std::string_view::npos;
  }

  std::string_view text_;
  std::string_view first_word_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::array<Level, kMaxDepth> levels_;
  std::array<Span, kMaxParts> parts_;
  std::size_t count_ = 0;
  bool lambda_ = false;
  std::size_t lambda_depth_ = 0;
  Span body_;  // the lambda's
  Span loop_;  // the comprehension, with its brackets
  std::size_t loop_depth_ = 0;
  std::size_t for_ = 0;
  std::size_t in_ = kNowhere;
  std::size_t first_end_ = kNowhere;
  std::size_t stored_ = 0;  // the sign of equality that stores the value behind it
  bool ordered_ = true;
  bool formats_subscript_ = false;
  bool matches_ = false;  // these two words are names, too, so it shows by what follows
  bool understood_ = false;
};

}  // namespace

std::optional<Statement> statement_around(std::string_view text, int line) noexcept {
  StatementReader reader(text);
  Statement statement;
  while (reader.next(statement)) {
    if (line <= statement.last) return line >= statement.first ? std::optional(statement) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<SourceExtent> extent_of(std::string_view text, const Statement& statement, Caller caller, SourcePart part,
                                      int rank, int count) noexcept {
  if (statement.text.starts_with('@')) return std::nullopt;
  const auto found = Parts(statement.text).of(caller, part, rank, count);
  if (!found) return std::nullopt;
  const auto from = static_cast<std::size_t>(statement.text.data() - text.data());
  const auto line_at = [&](std::size_t at) {
    const std::string_view before = statement.text.substr(0, at);
    return statement.first + static_cast<int>(std::ranges::count(before, '\n'));
  };
  const auto column_at = [&](std::size_t at) {
    const std::string_view before = text.substr(0, from + at);
    return static_cast<int>(before.size() - (before.rfind('\n') + 1));
  };
  return SourceExtent{line_at(found->begin), line_at(found->end), column_at(found->begin), column_at(found->end)};
}

}  // namespace devsan::hooks
