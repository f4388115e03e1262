// What decides, without a look at the device, that a kept value is used once more: `if self.anchors is not None:
// return` in the method that makes it, or `if n > self.length: self.build(n, device)` around the call of that method.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxLinesToStore = 12;

// "table" and "length" of `self.table, self.length = made, n`.
std::vector<std::string> attributes_stored(std::string_view statement) {
  constexpr std::string_view kSelf = "self.";
  std::vector<std::string> found;
  const std::size_t equals = statement.find(" = ");
  const std::string_view targets = statement.substr(0, equals == statement.npos ? 0 : equals);
  for (std::size_t at = targets.find(kSelf); at != targets.npos; at = targets.find(kSelf, at + 1)) {
    std::size_t end = at + kSelf.size();
    while (end < targets.size() && trace::is_word(targets[end])) ++end;
    if (end == targets.size() || targets[end] == ',') found.emplace_back(targets.substr(at, end - at));
  }
  return found;
}

bool asks_for(std::string_view condition, const std::vector<std::string>& attributes) {
  constexpr std::array<std::string_view, 3> kDevices = {"device", "cuda", "gpu"};
  for (const std::string_view word : kDevices) {
    if (condition.find(word) != condition.npos) return false;
  }
  return std::ranges::any_of(attributes, [condition](const std::string& one) {
    // Also of the object that another one asks for it: `self.windows.longest`.
    const std::string name = one.substr(one.find('.'));
    const std::size_t at = condition.find(name);
    const std::size_t behind = at + name.size();
    return at != condition.npos && (behind == condition.size() || !trace::is_word(condition[behind]));
  });
}

// The attributes that a method stores what it makes on `line` in, and those that it stores with that.
std::vector<std::string> kept_in(const SourceLines& lines, int line) {
  std::vector<std::string> found;
  const int definition = enclosing_line(lines, line, "def ");
  const int end = end_of_function(lines, line);
  if (definition == 0) return found;
  bool kept = false;
  for (int k = definition + 1; k <= end; ++k) {
    if (is_blank(lines[k]) || lines[k].find("self.") == std::string_view::npos) continue;
    auto stored = attributes_stored(statement_at(lines, k));
    kept = kept || (!stored.empty() && k >= line && k <= line + kMaxLinesToStore);
    found.insert(found.end(), std::make_move_iterator(stored.begin()), std::make_move_iterator(stored.end()));
  }
  return kept ? found : std::vector<std::string>();
}

// `if self.anchors is not None:` above, with nothing but a `return` under it; 0 without one.
int early_return(const SourceLines& lines, int line, const std::vector<std::string>& attributes) {
  const int definition = enclosing_line(lines, line, "def ");
  for (int k = line - 1; k > definition && definition != 0; --k) {
    const std::string_view text = trimmed(lines[k]);
    if (!text.starts_with("if ") || !asks_for(text, attributes)) continue;
    const bool in_line = text.find(": return") != text.npos;
    if (in_line || trimmed(lines[k + 1]).starts_with("return")) return k;
  }
  return 0;
}

// The condition around a line, or a call of the method, in a method of the same object; 0 without one.
int asking_condition(const SourceLines& lines, int line, const std::vector<std::string>& attributes) {
  const int condition = condition_around(lines, line);
  return condition != 0 && asks_for(lines[condition], attributes) ? condition : 0;
}

// `if self.state is None or self.state.shape != x.shape:` around the line that makes it anew: it asks more than whether
// there is one, so it is where the device would be asked for, too. 0 without one.
int condition_to_make(const SourceLines& lines, int line, const std::vector<std::string>& attributes) {
  constexpr std::array<std::string_view, 5> kCompares = {" != ", " == ", " < ", " > ", " not in "};
  const int condition = asking_condition(lines, line, attributes);
  if (condition == 0) return 0;
  const std::string text = statement_at(lines, condition);
  const bool compares =
      std::ranges::any_of(kCompares, [&](std::string_view one) { return text.find(one) != text.npos; });
  return compares ? condition : 0;
}

}  // namespace

void find_cache_guard(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    const std::vector<std::string> attributes = kept_in(lines, made.line);
    if (attributes.empty()) return true;
    int guard = early_return(lines, made.line, attributes);
    if (guard == 0) guard = condition_to_make(lines, made.line, attributes);
    const std::vector<trace::Position> frames = call_frames(made, node.calls);
    // A step that was computed keeps no calls; those of the step that it was made of are the same.
    if (guard == 0 && frames.size() > 1 && frames[1].file == made.file) {
      guard = asking_condition(lines, frames[1].line, attributes);
    }
    if (guard == 0) return node.how == trace::How::derived;
    found.add(trace::EvidenceKind::cache_guard_at, index,
              position_at(made.file, guard, qualified_function(lines, guard)), statement_at(lines, guard));
    return false;
  });
}

}  // namespace devsan::hooks
