// A number that is kept, to be read later: `diary.note("loss", loss)`, where `note()` appends what it is given to a
// list. Of all calls of that method in the program one gives something that is no number of Python's.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/factory_text.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxContainers = 8;

// A method that puts what it is given into a container, as it is.
struct Keeper {
  std::string name;
  std::string definition;
  std::vector<std::string> arguments;  // that it puts there
};

// The arguments that a statement such as `self.pages[name].append((name, value))` puts there; empty for another one.
std::vector<std::string> arguments_put(std::string_view statement, const std::string& definition) {
  std::vector<std::string> found;
  for (const ContainerPut& put : puts_in(statement)) {
    for (const std::string& name : variables_in(put.value)) {
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

// What a statement that calls the method, by this name, gives it beside numbers: a variable may be one, too.
enum class Gives { numbers, variable, tensor };
Gives given_by_call(const std::string& statement, const std::string& name, const Keeper& keeper) {
  const std::size_t at = call_in(statement, name);
  if (at == statement.npos || (name == keeper.name && (at == 0 || statement[at - 1] != '.'))) return Gives::numbers;
  const auto arguments = arguments_at(statement, at + name.size());
  if (!arguments) return Gives::numbers;
  const CallText call{name, *arguments};
  Gives most = Gives::numbers;
  for (const std::string& argument : keeper.arguments) {
    const Given given = given_for(*parameter_of(keeper.definition, argument), call, true);
    if (given.by != Given::By::value || is_number(given.text)) continue;
    most = std::max(most, is_identifier(given.text) ? Gives::variable : Gives::tensor);
  }
  return most;
}

// What the program calls the method by: its name, or for `__call__` what it calls the object.
std::vector<std::string> names_of(const Inquiry& inquiry, const Keeper& keeper, const void* keeping) {
  if (keeper.name != "__call__") return {keeper.name};
  std::vector<std::string> names;
  const auto add = [&](const Link& link) {
    const bool named =
        link.kind == LinkKind::attribute || link.kind == LinkKind::local || link.kind == LinkKind::global;
    if (named && link.name != nullptr) names.push_back(text_of(link.name));
  };
  const std::uint32_t place = inquiry.search.find_place(keeping);
  if (place != kNoPlace) add(inquiry.search.place(place).link);
  for (const Holding& holding : inquiry.search.holdings_of(keeping)) add(holding.link);
  return names;
}

bool all_on_one_line(const std::vector<trace::Position>& all) {
  return std::ranges::all_of(all, [&](const trace::Position& one) { return same_line(one, all.front()); });
}

// The only call that gives something else than numbers. Where others give variables, it is the one that says what it
// gives, if the operand was made there.
std::optional<trace::Position> giving(const Inquiry& inquiry, std::size_t operand, const Keeper& keeper,
                                      const std::vector<std::string>& names) {
  FileLines files;
  std::vector<trace::Position> tensors;
  std::vector<trace::Position> all;
  for (const std::string& name : names) {
    visit_loads(inquiry.own_code.code(), name, [&](const trace::Position& at) {
      const Gives gives = given_by_call(statement_at(files.of(at.file), at.line), name, keeper);
      if (gives != Gives::numbers) all.push_back(at);
      if (gives == Gives::tensor) tensors.push_back(at);
      return true;
    });
  }
  if (!all.empty() && all_on_one_line(all)) return all.front();
  if (tensors.empty() || !all_on_one_line(tensors)) return std::nullopt;
  const trace::LineageNode made = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  const bool made_there = same_line(runtime.recorder->site(made.site).user, tensors.front());
  return made_there ? std::optional(tensors.front()) : std::nullopt;
}

// Where something is kept, and by which object: in an attribute of it, or in itself, if it is a container.
struct Kept {
  const void* by = nullptr;
  std::string attribute;  // empty in itself
};

// Whether the program has made a container of its own: `class Log(dict)`.
bool has_methods(const void* object) {
  return std::ranges::any_of(functions_of_type(type_of(object)), [](const void* function) {
    return (code_table.classify(code_of_function(function)) & kTorchCode) == 0;
  });
}

Kept where_kept(const Inquiry& inquiry, const void* object) {
  std::vector<const void*> held{object};
  for (std::size_t k = 0; k < held.size() && held.size() < kMaxContainers; ++k) {
    if (k > 0 && has_methods(held[k])) return {held[k], ""};
    for (const Holding& holding : inquiry.search.holdings_of(held[k])) {
      if (holding.link.kind == LinkKind::attribute && holding.link.name != nullptr && k > 0) {
        return {holding.holder, text_of(holding.link.name)};
      }
      if (is_entry(holding.link.kind) && std::ranges::find(held, holding.holder) == held.end()) {
        held.push_back(holding.holder);
      }
    }
  }
  return {};
}

// The only line that puts something into an attribute of this name, or into an entry of it; of an object that keeps in
// itself, the only one of its methods.
std::optional<trace::Position> only_put(const Inquiry& inquiry, const Kept& kept) {
  std::vector<const void*> all = inquiry.own_code.code();
  if (kept.attribute.empty()) {
    all.clear();
    for (const void* function : functions_of_type(type_of(kept.by))) all.push_back(code_of_function(function));
  }
  FileLines files;
  std::optional<trace::Position> found;
  const std::string name = kept.attribute.empty() ? "self" : kept.attribute;
  for (const void* code : all) {
    if (!mentions_text(code, name) && !kept.attribute.empty()) continue;
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (!loads_name(one, name)) continue;
      const trace::Position at = position_of(code, one.offset);
      const auto puts = puts_in(statement_at(files.of(at.file), at.line));
      if (std::ranges::none_of(puts, [&](const auto& put) { return container_name(put.container) == name; })) continue;
      if (found && !same_line(*found, at)) return std::nullopt;
      found = at;
    }
  }
  return found;
}

}  // namespace

void find_given_to_keep(const Inquiry& inquiry, std::size_t operand) {
  const Kept kept = where_kept(inquiry, inquiry.object_of(operand));
  const auto put = kept.by == nullptr ? std::nullopt : only_put(inquiry, kept);
  if (!put) return;
  SourceFiles files;
  const auto keeper = keeper_around(SourceLines(files.whole(put->file)), put->line);
  if (!keeper) return;
  const auto at = giving(inquiry, operand, *keeper, names_of(inquiry, *keeper, kept.by));
  if (at) inquiry.found.add(trace::EvidenceKind::given_to_keep_at, operand, *at, keeper->name);
}

}  // namespace devsan::hooks
