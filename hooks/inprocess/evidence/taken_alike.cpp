// What comes out of one source bit by bit: `states = next(stream).to(device)`, and `rewards = next(stream)` as it is.
// Read from the source of the function that takes both.
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// Whether the program moved something there to a device where the operand is missed.
bool moves_there(const Inquiry& inquiry, std::size_t operand, trace::StringId file, int first, int last) {
  bool moves = false;
  visit_lineage_nodes([&](trace::LineageId, const trace::LineageNode& node) {
    if (node.how != trace::How::moved || !inquiry.is_wanted(operand, node.device)) return;
    const trace::Position at = runtime.recorder->site(node.site).user;
    moves = moves || (at.file == file && at.line >= first && at.line <= last);
  });
  return moves;
}

// `rewards = next(stream)`: the whole value is a call that gives something else each time, and no factory.
std::string call_taken(const std::string& statement, const std::string& variable) {
  const auto value = assigned_to(statement, variable);
  const auto call = value ? call_text(*value) : std::nullopt;
  return call && !call->callee.starts_with("torch.") ? *value : std::string();
}

}  // namespace

bool find_taken_alike(const Inquiry& inquiry, std::size_t operand) {
  std::uint32_t place = inquiry.search.sighting(operand).place;
  if (place == kNoPlace || !inquiry.search.is_root(place)) return false;
  const auto bound = binding_at(inquiry, operand, inquiry.search.place(place));
  if (!bound) return false;
  SourceFiles files;
  const SourceLines lines(files.whole(bound->at.file));
  const std::string taken = call_taken(statement_at(lines, bound->at.line), bound->name);
  if (taken.empty()) return false;
  const int definition = enclosing_line(lines, bound->at.line, "def ");
  const int end = end_of_function(lines, bound->at.line);
  for (int k = definition + 1; k <= end; ++k) {
    if (is_blank(lines[k]) || k == bound->at.line || lines[k].find(taken + ".") == std::string_view::npos) continue;
    if (enclosing_line(lines, k, "def ") != definition) continue;
    const int last = end_of_statement(lines, k);
    if (!moves_there(inquiry, operand, bound->at.file, k, last)) continue;
    const std::string name = leading_name(statement_at(lines, k));
    inquiry.found.add(trace::EvidenceKind::sibling_moved, operand,
                      position_at(bound->at.file, k, qualified_function(lines, k)), name.empty() ? taken : name);
    return true;
  }
  return false;
}

}  // namespace devsan::hooks
