// The tensor that an operand was computed from and that is still kept somewhere.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// Where the attribute that keeps it is stored; none where that is not known.
std::optional<trace::Position> stored_at(const Inquiry& inquiry, std::size_t operand, const Ancestor& kept) {
  const Place& place = inquiry.search.place(kept.place);
  return attribute_store(inquiry, operand, inquiry.search.place(place.parent).object, place.link.name);
}

// `self.counts += (x > 0).sum(0).cpu()`: whether a statement brings to the host what it adds to an attribute.
bool feeds_on_host(std::string_view statement, const std::string& attribute) {
  const std::size_t named = name_in(statement, attribute);
  const std::size_t brought = std::min(statement.rfind(".cpu()"), statement.rfind(".to(\"cpu\")"));
  if (named == statement.npos || named == 0 || statement[named - 1] != '.' || brought == statement.npos) return false;
  const std::string_view behind = trimmed(statement.substr(named + attribute.size()));
  constexpr std::array<std::string_view, 6> kFills = {"= ",          "+= ", ".add_(", ".copy_(", ".scatter_add_(",
                                                      ".index_add_("};
  return brought > named && std::ranges::any_of(kFills, [&](std::string_view one) { return behind.starts_with(one); });
}

// The line of a method of the object that keeps it which does so.
std::optional<trace::Position> fed_on_host_at(const void* holder, const std::string& attribute) {
  FileLines files;
  for (const void* function : functions_of_type(type_of(holder))) {
    const trace::Position at = position_of(code_of_function(function), 0);
    const SourceLines& lines = files.of(at.file);
    const int definition = definition_below(lines, at.line);
    const int end = definition != 0 ? end_of_function(lines, definition + 1) : 0;
    for (int line = definition + 1; line <= end; ++line) {
      if (is_blank(lines[line]) || !feeds_on_host(statement_at(lines, line), attribute)) continue;
      return position_at(at.file, line, qualified_function(lines, line));
    }
  }
  return std::nullopt;
}

}  // namespace

void find_ancestor(const Inquiry& inquiry, std::size_t operand) {
  const Sighting& sighting = inquiry.search.sighting(operand);
  const bool itself = sighting.place != kNoPlace && !sighting.base && !inquiry.search.is_root(sighting.place);
  if (itself) return;
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  const Ancestor& kept = inquiry.search.kept_ancestor(operand);
  const auto stored = kept.place != kNoPlace && kept.certain ? stored_at(inquiry, operand, kept) : std::nullopt;
  if (ancestor.place != kNoPlace && ancestor.certain) {
    trace::Position at{};
    if (ancestor.place == kept.place) at = stored.value_or(at);
    if (inquiry.search.is_root(ancestor.place)) {
      const auto binding = binding_at(inquiry, operand, inquiry.search.place(ancestor.place));
      if (binding) at = binding->at;
    }
    inquiry.found.add(trace::EvidenceKind::computed_from, operand, at, inquiry.search.path_to(ancestor.place));
  }
  if (!stored) return;
  inquiry.found.add(trace::EvidenceKind::kept_source_at, operand, *stored, inquiry.search.path_to(kept.place));
  const Place& place = inquiry.search.place(kept.place);
  const void* holder = inquiry.search.place(place.parent).object;
  if (const auto fed = fed_on_host_at(holder, link_name(place.link))) {
    inquiry.found.add(trace::EvidenceKind::source_fed_on_host_at, operand, *fed, link_name(place.link));
  }
  if (!is_torch_module(holder)) return;
  const auto moved = move_of_holder(inquiry, operand, holder);
  if (!moved) return;
  inquiry.found.add(trace::EvidenceKind::source_holder_moved_at, operand, runtime.recorder->site(moved->site).user,
                    std::string(short_type_name(holder)) + written(place.link));
}

}  // namespace devsan::hooks
