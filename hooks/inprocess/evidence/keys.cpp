// Caches whose key leaves the device out: a function looks for an entry, makes it on the device that it is asked for
// where there is none, and later hands it out for another device, too. Read from the source of the function that stores
// the entry, so that it serves operators of a backward, too.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxStatementLines = 6;
constexpr std::size_t kMaxCalls = 3;  // between who makes an entry and the function that stores it
constexpr int kMaxFunctionLines = 200;

bool speaks_of_device(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 4> kWords = {"dev", "cuda", "gpu", "rank"};
  return std::ranges::any_of(kWords, [text](std::string_view word) { return text.find(word) != text.npos; });
}

// What a key says of the device, the more the later: "cuda" of `x.device.type` is the same for all GPUs.
enum class Said { nothing, type, device };

// "x.device.type" and "x.type()" are taken out of a text.
std::string without_device_types(std::string text) {
  constexpr std::string_view kType = ".type";
  for (std::size_t at = text.find(kType); at != text.npos; at = text.find(kType, at)) {
    const std::size_t begin = trace::begin_of_path(text, at);
    std::size_t end = at + kType.size();
    const bool called = text.compare(end, 2, "()") == 0;
    const bool longer = end < text.size() && (trace::is_word(text[end]) || text[end] == '(');
    const bool of_device = !longer && speaks_of_device(std::string_view(text).substr(begin, at - begin));
    if (called) end += 2;
    if (called || of_device) text.erase(begin, end - begin);
    at = called || of_device ? begin : end;
  }
  return text;
}

Said said_of_device(const std::string& text) {
  const std::string rest = without_device_types(text);
  if (speaks_of_device(rest)) return Said::device;
  return rest.size() < text.size() ? Said::type : Said::nothing;
}

// What a statement stores as an entry, with its key.
std::optional<ContainerPut> entry_put(const SourceLines& lines, int line) {
  for (ContainerPut& put : puts_in(statement_at(lines, line))) {
    if (!put.key.empty()) return std::move(put);
  }
  return std::nullopt;
}

// The function around a line, as far as a cache is filled in it.
class CachingFunction {
 public:
  CachingFunction(const SourceLines& lines, int line) : lines_(lines), begin_(enclosing_line(lines, line, "def ")) {
    if (begin_ == 0) return;
    const std::size_t outer = indentation(lines[begin_]);
    end_ = begin_ + 1;
    while (end_ <= lines.count() && end_ - begin_ < kMaxFunctionLines &&
           (is_blank(lines[end_]) || indentation(lines[end_]) > outer || lines[end_].find("):") == outer)) {
      ++end_;
    }
  }

  bool known() const { return begin_ != 0; }

  // The line that stores what was made on `line`: the same, or a later one that stores the variable.
  int store_of(int line) const {
    for (int k = line; k > begin_ && line - k < kMaxStatementLines; --k) {
      if (goes_on_to(lines_, k, line) && entry_put(lines_, k)) return k;
    }
    const std::string made = variable_at(line);
    for (int k = line + 1; !made.empty() && k < end_; ++k) {
      const auto entry = entry_put(lines_, k);
      if (entry && has_word(entry->value, made)) return k;
    }
    return 0;
  }

  // Whether the function looks for an entry before it makes one.
  bool looks_up(const std::string& container) const {
    const std::array<std::string, 3> kLooks = {" in " + container, container + ".get(", container + ".setdefault("};
    for (int k = begin_ + 1; k < end_; ++k) {
      const std::string text = statement_at(lines_, k);
      if (text.find("except KeyError") != text.npos) return true;
      for (const std::string& look : kLooks) {
        const std::size_t at = text.find(look);
        const std::size_t behind = at + look.size();
        const bool whole =
            at != text.npos && (look.back() == '(' || behind == text.size() ||
                                !(trace::is_word(text[behind]) || text[behind] == '.' || text[behind] == '['));
        if (whole && !text.starts_with("for ")) return true;
      }
    }
    return false;
  }

  // The only line that gives the variable a value; 0 where there is none, or where there are several.
  int only_assignment(std::string_view variable, std::string& value) const {
    const std::vector<int> found = assignments_of(lines_, variable, begin_, end_);
    if (found.size() != 1) return 0;
    value = *assigned_to(statement_at(lines_, found.front()), variable);
    return found.front();
  }

  // What all that the key is made of says of a device, as far as it can be followed.
  Said said_by(const std::string& key) const {
    const std::string rest = without_device_types(key);
    Said said = said_of_device(key);
    for (std::size_t at = 0; at < rest.size();) {
      std::size_t end = at;
      while (end < rest.size() && trace::is_word(rest[end])) ++end;
      std::string value;
      const std::string name = rest.substr(at, end - at);
      if (is_identifier(name) && only_assignment(name, value) != 0) said = std::max(said, said_of_device(value));
      const bool whole = end == rest.size() || rest[end] != '.';  // `x.shape` says nothing of where `.to(x)` goes
      if (is_identifier(name) && whole && is_given_as_device(name)) return Said::device;
      at = end + 1;
    }
    return said;
  }

 private:
  // Itself: the key of `device=x.device` is not made of a device because it is made of `x.shape`.
  bool is_given_as_device(const std::string& name) const {
    if (name.find("dtype") != name.npos) return false;  // `.to(dtype)`
    for (int k = begin_ + 1; k < end_; ++k) {
      for (const std::string before : {"device=", ".to("}) {
        const std::size_t at = lines_[k].find(before + name);
        if (at == std::string_view::npos) continue;
        const std::string_view behind = lines_[k].substr(at + before.size() + name.size());
        if (behind.empty() || (!trace::is_word(behind.front()) && behind.front() != '.')) return true;
      }
    }
    return false;
  }

  // "made" where the statement at a line is `made = …`.
  std::string variable_at(int line) const {
    std::string_view text = lines_[line];
    text.remove_prefix(indentation(text));
    const std::string_view name(text.begin(), std::ranges::find_if_not(text, trace::is_word));
    return is_identifier(name) && assigned_to(statement_at(lines_, line), name) ? std::string(name) : std::string();
  }

  const SourceLines& lines_;
  const int begin_;
  int end_ = 0;
};

// Says of an entry that is stored at `line` where its key is made, if that leaves the device out, or its index.
void add_key(const SourceLines& lines, const CachingFunction& function, trace::StringId file, int line,
             std::size_t operand, EvidenceList& found) {
  const auto entry = entry_put(lines, line);
  if (!entry || !function.looks_up(entry->container)) return;
  std::string value;
  const int made = is_identifier(entry->key) ? function.only_assignment(entry->key, value) : 0;
  const Said said = std::max(function.said_by(made != 0 ? value : entry->key), function.said_by(entry->key));
  if (said == Said::device) return;
  const auto kind = said == Said::type ? trace::EvidenceKind::cache_key_type_at : trace::EvidenceKind::cache_key_at;
  const int at = made != 0 && made < line ? made : line;
  found.add(kind, operand, position_at(file, at, qualified_function(lines, at)), entry->container);
}

}  // namespace

void find_cache_key_in_text(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  const auto look_at = [&](const trace::Position& at, const SourceLines& lines) {
    const CachingFunction function(lines, at.line);
    const int store = function.known() ? function.store_of(at.line) : 0;
    if (store != 0) add_key(lines, function, at.file, store, index, found);
    return store != 0;
  };
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    if (look_at(made, lines)) return false;
    // A cache calls who makes its entries: `cache[key] = build(size, device)`.
    SourceFiles files;
    const std::vector<trace::Position> calls = call_frames(made, node.calls);
    for (std::size_t k = 1; k < std::min(calls.size(), 1 + kMaxCalls); ++k) {
      const trace::Position& at = calls[k];
      if (at.file != made.file && files.whole(at.file).empty()) break;
      if (look_at(at, at.file == made.file ? lines : SourceLines(files.whole(at.file)))) return false;
    }
    return true;
  });
}

// What another function made: `cache[key] = build(size, device)`.
void find_cache_key(const Inquiry& inquiry, std::size_t operand) {
  const auto store = dict_store(inquiry, operand);
  if (!store) return;
  SourceFiles files;
  const SourceLines lines(files.whole(store->file));
  const CachingFunction function(lines, store->line);
  if (function.known()) add_key(lines, function, store->file, store->line, operand, inquiry.found);
}

}  // namespace devsan::hooks
