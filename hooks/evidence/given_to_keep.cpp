// A number that is kept, to be read later: `diary.note("loss", loss)`, where `note()` appends what it is given to a
// list. Of all calls of that method in the program one gives something that is no number of Python's.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/evidence/evidence.h"
#include "hooks/evidence/factory_text.h"
#include "hooks/origins/sites.h"
#include "hooks/process/runtime.h"
#include "hooks/python/byte_code.h"
#include "hooks/python/code_api.h"
#include "hooks/python/python_frames.h"
#include "hooks/source/python_calls.h"
#include "hooks/source/python_text.h"
#include "hooks/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxContainers = 8;
constexpr std::array<std::string_view, 2> kPuts = {".append(", ".add("};

// A method that puts what it is given into a container, as it is.
struct Keeper {
  std::string name;
  std::string definition;
  std::vector<std::string> arguments;  // that it puts there
};

// The arguments that a statement such as `self.pages[name].append((name, value))` puts there; empty for another one.
std::vector<std::string> arguments_put(std::string_view statement, const std::string& definition) {
  std::vector<std::string> found;
  for (const std::string_view put : kPuts) {
    const std::size_t at = statement.find(put);
    const std::size_t open = at != statement.npos ? at + put.size() - 1 : at;
    const std::size_t close = open != statement.npos ? closing_of(statement, open) : open;
    if (close == statement.npos) continue;
    for (const std::string& name : variables_in(statement.substr(open + 1, close - open - 1))) {
      if (parameter_of(definition, name)) found.push_back(name);
    }
  }
  return found;
}

// `line`: one that puts something into a container.
std::optional<Keeper> keeper_around(const SourceLines& lines, int line) {
  const int definition = enclosing_line(lines, line, "def ");
  if (definition == 0) return std::nullopt;
  Keeper keeper{defined_name(lines[definition], "def "), statement_at(lines, definition), {}};
  keeper.arguments = arguments_put(statement_at(lines, line), keeper.definition);
  if (keeper.arguments.empty() || !is_bound(keeper.definition)) return std::nullopt;
  return keeper;
}

// A literal, a size, or what was asked for by `.item()` and its kin.
bool is_number(std::string_view text) {
  constexpr std::array<std::string_view, 7> kCalls = {"item", "float", "int", "len", "cpu", "tolist", "numpy"};
  const std::string_view value = trimmed(text);
  if (value.empty() || value.front() == '"' || value.front() == '\'' || value.starts_with("f\"")) return true;
  if (std::isdigit(static_cast<unsigned char>(value.front())) != 0 || value == "None") return true;
  return std::ranges::any_of(kCalls, [value](std::string_view name) { return call_in(value, name) != value.npos; });
}

// Whether a statement calls the method with something that may be a tensor.
bool gives_tensor(const std::string& statement, const Keeper& keeper) {
  const std::size_t at = call_in(statement, keeper.name);
  if (at == statement.npos || at == 0 || statement[at - 1] != '.') return false;
  const auto arguments = arguments_at(statement, at + keeper.name.size());
  if (!arguments) return false;
  const CallText call{keeper.name, *arguments};
  return std::ranges::any_of(keeper.arguments, [&](const std::string& name) {
    const auto parameter = parameter_of(keeper.definition, name);
    const Given given = given_for(*parameter, call, true);
    return given.by == Given::By::value && !is_number(given.text);
  });
}

std::optional<trace::Position> only_giving(const Inquiry& inquiry, const Keeper& keeper) {
  SourceFiles files;
  std::optional<trace::Position> found;
  for (const void* code : inquiry.own_code.code()) {
    if (!mentions_text(code, keeper.name)) continue;
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (!loads_name(one, keeper.name)) continue;
      const trace::Position at = position_of(code, one.offset);
      if (!gives_tensor(statement_at(SourceLines(files.whole(at.file)), at.line), keeper)) continue;
      if (found && !same_line(*found, at)) return std::nullopt;
      found = at;
    }
  }
  return found;
}

// The lines of the program that append something to an attribute of this name, or to an entry of it.
std::optional<trace::Position> only_append(const Inquiry& inquiry, std::string_view attribute) {
  return only_load(inquiry, attribute, [attribute](std::string_view line) {
    const bool puts = std::ranges::any_of(kPuts, [line](std::string_view put) { return line.find(put) != line.npos; });
    return puts && mentions_name(line, attribute);
  });
}

// The attribute that keeps an object, in containers; empty where none does.
std::string keeping_attribute(const Inquiry& inquiry, const void* object) {
  std::vector<const void*> held{object};
  char buffer[256];
  for (std::size_t k = 0; k < held.size() && held.size() < kMaxContainers; ++k) {
    for (const Holding& holding : inquiry.search.holdings_of(held[k])) {
      if (holding.link.kind == LinkKind::attribute && holding.link.name != nullptr && k > 0) {
        return std::string(text_of(holding.link.name, buffer, sizeof buffer));
      }
      if (is_entry(holding.link.kind) && std::ranges::find(held, holding.holder) == held.end()) {
        held.push_back(holding.holder);
      }
    }
  }
  return "";
}

}  // namespace

void find_given_to_keep(const Inquiry& inquiry, std::size_t operand) {
  const std::string attribute = keeping_attribute(inquiry, inquiry.object_of(operand));
  const auto put = attribute.empty() ? std::nullopt : only_append(inquiry, attribute);
  if (!put) return;
  SourceFiles files;
  const auto keeper = keeper_around(SourceLines(files.whole(put->file)), put->line);
  const auto at = keeper ? only_giving(inquiry, *keeper) : std::nullopt;
  if (at) inquiry.found.add(trace::EvidenceKind::given_to_keep_at, operand, *at, keeper->name);
}

}  // namespace devsan::hooks
