#include "report/model/compare.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>

namespace devsan::report {
namespace {

// From the most certain to the least.
enum class Likeness { id, path, tail, name };
constexpr Likeness kLikenesses[] = {Likeness::id, Likeness::path, Likeness::tail, Likeness::name};
constexpr char kEnd = '\x1f';

std::string line_without_indent(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin));
}

// The last `parts` of a path: of a checkout elsewhere they are the same.
std::string tail_of(const std::string& path, int parts) {
  std::size_t at = path.size();
  for (int part = 0; part < parts && at != std::string::npos && at > 0; ++part) at = path.rfind('/', at - 1);
  return at == std::string::npos || at == 0 ? path : path.substr(at + 1);
}

// What has nothing to do with where it happened.
std::string subject_of(const Finding& finding) {
  std::string key = std::string(name_of(finding.kind)) + kEnd + finding.op + kEnd;
  if (!finding.where && !finding.native_stack.empty()) key += finding.native_stack.front().symbol + kEnd;
  if (finding.growth) key += finding.growth->device + kEnd + finding.growth->holder + kEnd;
  if (finding.live) key += finding.live->device + kEnd;
  if (finding.last_moments) key += std::to_string(finding.last_moments->ending.signal) + kEnd;
  return key;
}

std::string names_of(const Finding& finding) {
  std::string names;
  for (const Operand& operand : finding.operands) {
    const std::string& name = operand.name.empty() ? operand.text : operand.name;
    if (!name.empty()) names += operand.arg + "=" + name + (operand.odd ? "!" : "") + kEnd;
  }
  return names;
}

// Empty if this kind of likeness does not distinguish the finding from others.
std::string key_of(const Finding& finding, Likeness likeness) {
  if (likeness == Likeness::id) return finding.id;
  const std::string names = names_of(finding);
  if (!finding.where) return likeness == Likeness::path ? subject_of(finding) + names : "";
  const Frame& where = *finding.where;
  const std::string line = line_without_indent(where.source);
  const std::string rest = kEnd + where.function + kEnd + names;
  switch (likeness) {
    case Likeness::path:
      return line.empty() ? "" : subject_of(finding) + where.file + rest + line;
    case Likeness::tail:
      return line.empty() ? "" : subject_of(finding) + tail_of(where.file, 2) + rest + line;
    case Likeness::name:
      return names.empty() && !line.empty() ? "" : subject_of(finding) + tail_of(where.file, 1) + rest;
    case Likeness::id:
      break;
  }
  return "";
}

}  // namespace

Comparison compare(const std::vector<const Finding*>& before, const std::vector<const Finding*>& after) {
  std::vector<const Finding*> partner(after.size(), nullptr);
  std::vector<bool> taken(before.size(), false);
  for (const Likeness likeness : kLikenesses) {
    std::map<std::string, std::deque<std::size_t>> open;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::string key = taken[i] ? "" : key_of(*before[i], likeness);
      if (!key.empty()) open[key].push_back(i);
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::string key = partner[i] != nullptr ? "" : key_of(*after[i], likeness);
      const auto found = key.empty() ? open.end() : open.find(key);
      if (found == open.end() || found->second.empty()) continue;
      partner[i] = before[found->second.front()];
      taken[found->second.front()] = true;
      found->second.pop_front();
    }
  }
  Comparison result;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (partner[i] == nullptr) {
      result.fresh.push_back(after[i]);
    } else {
      const bool worse = after[i]->severity < partner[i]->severity;
      (worse ? result.worse : result.same).push_back({partner[i], after[i]});
    }
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!taken[i]) result.gone.push_back(before[i]);
  }
  return result;
}

}  // namespace devsan::report
