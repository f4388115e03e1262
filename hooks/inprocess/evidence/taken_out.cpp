// What a line sends to another device to be kept there, in a container: the line that takes it out again has to bring
// it back.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::array<std::string_view, 3> kMoves = {"to", "cuda", "cpu"};
constexpr std::array<std::string_view, 8> kTakes = {"[",     ".pop(",     ".popleft(", ".popitem(",
                                                    ".get(", ".values()", ".items()",  ".get_nowait("};

// "self.cold" of `self.cold[key] = x.cpu()` and of `self.cold.append(x.cpu())`; empty for any other statement.
std::string container_filled(const std::string& statement) {
  const auto puts = puts_in(statement);
  return puts.empty() ? "" : std::string(without_subscripts(puts.back().container));
}

// Whether a line takes something out of a container of this name, as it is.
bool takes_out(std::string_view line, std::string_view name) {
  const std::string_view code = line.substr(std::min(indentation(line), line.size()));
  if (trace::calls_method(code, kMoves) || code.starts_with("del ")) return false;
  std::string_view value = code;
  const auto store = entry_stored(code);
  if (store && store->container.ends_with(name)) value = store->value;
  for (std::size_t at = name_in(value, name); at != value.npos; at = name_in(value, name, at + 1)) {
    const std::string_view behind = value.substr(at + name.size());
    if (std::ranges::any_of(kTakes, [behind](auto take) { return behind.starts_with(take); })) return true;
  }
  return false;
}

}  // namespace

void find_taken_out(const Inquiry& inquiry, std::size_t operand) {
  visit_history(inquiry.operands[operand], [&](const trace::LineageNode& node, const trace::Position& made,
                                               const SourceLines& lines) {
    if (node.how != trace::How::moved) return true;
    const std::string container = container_filled(statement_at(lines, made.line));
    const std::string name = container.substr(container.rfind('.') + 1);
    if (name.empty()) return false;
    const auto found = only_load(inquiry, name, [&](std::string_view line) { return takes_out(line, name); });
    if (found && found->line != made.line) {
      inquiry.found.add(trace::EvidenceKind::taken_out_at, operand, *found, container);
    }
    return false;
  });
}

}  // namespace devsan::hooks
