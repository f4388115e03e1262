// An object that is no module and moves itself: `batch.to(device)` makes a new batch of what it keeps, and hands one
// part on as it is. Read from the source of the method, where it has the columns of its calls.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "hooks/byte_code.h"
#include "hooks/evidence.h"
#include "hooks/python_calls.h"
#include "hooks/python_frames.h"
#include "hooks/python_text.h"
#include "hooks/sites.h"
#include "hooks/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::array<std::string_view, 6> kMovers = {"to", "cuda", "cpu", "to_device", "move_to", "pin_memory"};

bool is_mover(const void* code) {
  const void* name = field<const void*>(code, code_members.name);
  return code_arguments(code) >= 1 &&
         std::ranges::any_of(kMovers, [name](std::string_view one) { return is_name(name, one); });
}

std::string_view value_of(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == argument.npos || !is_identifier(argument.substr(0, equals))) return argument;
  return argument.substr(equals + 1);
}

// "x" and "data" of `self.data.to(x)`: what moves one attribute of the object.
bool moves_attribute(std::string_view value, std::string_view self) {
  const std::string own = std::string(self) + ".";
  const auto moves = [value](std::string_view mover) {
    return value.find("." + std::string(mover) + "(") != value.npos;
  };
  return value.starts_with(own) && std::ranges::any_of(kMovers, moves);
}

// Whether a call makes another object of the same type: `Batch(…)`, `type(self)(…)`, `cls(…)`, `replace(self, …)`.
bool makes_another(const CallText& call, std::string_view type) {
  const std::string_view callee = call.callee;
  const std::string_view last = callee.substr(callee.rfind('.') + 1);
  return last == type || last == "__class__" || last == "cls" || last == "replace" || last == "_replace" ||
         callee.starts_with("type(");
}

// The line of a method on which the attribute is handed on as it is to a new object, beside others that are moved.
std::optional<trace::Position> handed_on(const void* code, const void* holder, std::string_view attribute) {
  char buffer[256];
  const std::string self(text_of(code_local_name(code, 0), buffer, sizeof buffer));
  const std::string part = self + "." + std::string(attribute);
  SourceFiles files;
  std::optional<SourceLines> lines;
  const ByteCode byte_code(code);
  for (const Instruction& one : byte_code.instructions()) {
    const trace::Position at = position_of(code, one.offset);
    if (!lines) lines.emplace(files.whole(at.file));
    const auto call = call_text(code_text(*lines, at));
    if (!call || !makes_another(*call, short_type_name(holder))) continue;
    const auto is_part = [&](const std::string& argument) { return value_of(argument) == part; };
    const auto is_moved = [&](const std::string& argument) { return moves_attribute(value_of(argument), self); };
    if (!std::ranges::any_of(call->arguments, is_part) || !std::ranges::any_of(call->arguments, is_moved)) continue;
    int line = at.line;
    while (line < at.end_line && (*lines)[line].find(part) == std::string_view::npos) ++line;
    return position_at(at.file, line, qualified_function(*lines, line));
  }
  return std::nullopt;
}

}  // namespace

void find_own_move(const Inquiry& inquiry, std::size_t operand) {
  const ObjectSearch& search = inquiry.search;
  std::uint32_t at = search.sighting(operand).place;
  while (at != kNoPlace && !search.is_root(at) && search.place(at).link.kind != LinkKind::attribute) {
    at = search.place(at).parent;
  }
  if (at == kNoPlace || search.is_root(at)) return;
  const void* holder = search.place(search.place(at).parent).object;
  if (is_torch_module(holder)) return;
  char buffer[256];
  const std::string attribute(text_of(search.place(at).link.name, buffer, sizeof buffer));
  for (const void* function : functions_of_type(type_of(holder))) {
    const void* code = code_of_function(function);
    if (!is_mover(code)) continue;
    const auto position = handed_on(code, holder, attribute);
    if (!position) continue;
    inquiry.found.add(trace::EvidenceKind::left_by_own_move, operand, *position,
                      std::string(short_type_name(holder)) + "." + attribute);
    return;
  }
}

}  // namespace devsan::hooks
