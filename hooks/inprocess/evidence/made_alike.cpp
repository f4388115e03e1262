// What a helper makes on the host, its callers move: one of them has moved what it got, and the one that got the
// operand has not.
#include <algorithm>
#include <optional>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/provenance/lineage.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_loops.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// The innermost of the calls that led to `ours` and not to `others`, where they part; none where it cannot be told.
// Both were made at one site.
std::optional<trace::Position> parting(const trace::LineageNode& ours, const trace::LineageNode& others) {
  const trace::Position made = runtime.recorder->site(ours.site).user;
  const std::vector<trace::Position> mine = call_frames(made, ours.calls);
  const std::vector<trace::Position> theirs = call_frames(made, others.calls);
  const auto is_same = [](const trace::Position& one, const trace::Position& other) {
    return one.file == other.file && one.line == other.line && one.column == other.column;
  };
  const auto ends = std::ranges::mismatch(mine, theirs, is_same);
  if (ends.in1 == mine.end() || ends.in2 == theirs.end()) return std::nullopt;
  const bool one_line = ends.in1->file == ends.in2->file && ends.in1->line == ends.in2->line;
  return one_line ? std::nullopt : std::optional(*ends.in1);
}

bool made_alike(const trace::LineageNode& one, const trace::LineageNode& other) {
  return other.how == one.how && other.op == one.op && other.device == one.device && other.site == one.site;
}

// What a variable goes through that a comprehension draws: "batches" of `[self.model(batch) for batch in batches]`.
// Empty for any other statement.
std::string drawn_from(std::string_view statement, std::string_view variable) {
  const std::size_t loop = statement.find(" for ");
  if (statement.starts_with("for ") || loop == statement.npos) return "";
  return has_word(loop_targets(statement.substr(loop + 1)), variable) ? unwrapped(iterated(statement)) : std::string();
}

// What the variable of a comprehension that runs in the frame goes through, in the function around.
std::optional<Binding> drawn_binding(const Inquiry& inquiry, std::size_t operand, const Place& variable,
                                     FileLines& files) {
  if (variable.frame == nullptr || variable.link.name == nullptr) return std::nullopt;
  const trace::Position at = waits_at(variable.frame);
  const std::string drawn = drawn_from(statement_at(files.of(at.file), at.line), text_of(variable.link.name));
  if (drawn.empty()) return std::nullopt;
  const void* frame = is_comprehension(at) ? caller_of(variable.frame) : variable.frame;
  return frame != nullptr ? binding_of(inquiry, operand, frame, drawn) : std::nullopt;
}

// The line that gave the operand's variable its value, or what a comprehension drew it from, by a call.
std::optional<trace::Position> asked_at(const Inquiry& inquiry, std::size_t operand) {
  const std::uint32_t place = inquiry.search.variable_behind(inquiry.search.sighting(operand).place);
  if (place == kNoPlace) return std::nullopt;
  const Place& variable = inquiry.search.place(place);
  FileLines files;
  auto bound = drawn_binding(inquiry, operand, variable, files);
  if (!bound) bound = binding_at(inquiry, operand, variable);
  if (!bound) return std::nullopt;
  const bool by_call = statement_at(files.of(bound->at.file), bound->at.line).find('(') != std::string::npos;
  return by_call ? std::optional(bound->at) : std::nullopt;
}

// Whether it is this value, or what it was computed from, that the line has copied.
bool is_move_of_itself(const Inquiry& inquiry, std::size_t operand, const trace::Position& moved) {
  return std::ranges::any_of(inquiry.found.records(), [&](const trace::EvidenceRecord& one) {
    const bool copied =
        one.kind == trace::EvidenceKind::copied_away || one.kind == trace::EvidenceKind::source_copied_at;
    return copied && one.operand == operand && same_line(one.at, moved);
  });
}

// A line that computes something of what the helper gave has asked for nothing.
bool has_step_at(const Inquiry& inquiry, std::size_t operand, const trace::Position& at) {
  bool found = false;
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& node) {
    found = found || same_line(runtime.recorder->site(node.site).user, at);
    return !found;
  });
  return found;
}

// What a helper has computed, another caller of it moves: the histories of the two meet in one line.
void find_computed_alike(const Inquiry& inquiry, std::size_t operand) {
  std::optional<trace::Position> moved;
  trace::LineageNode made = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  for (; made.how == trace::How::derived && !moved; made = runtime.recorder->lineage(made.parent)) {
    if (is_running(inquiry.innermost, runtime.recorder->site(made.site).user)) continue;
    visit_lineage_nodes([&](trace::LineageId, const trace::LineageNode& move) {
      const bool to_there = move.how == trace::How::moved && inquiry.is_wanted(operand, move.device);
      if (moved || !to_there || !made_alike(made, runtime.recorder->lineage(move.parent))) return;
      moved = runtime.recorder->site(move.site).user;
    });
  }
  if (!moved || moved->line == 0 || is_running(inquiry.innermost, *moved) ||
      is_move_of_itself(inquiry, operand, *moved))
    return;
  const auto asked = asked_at(inquiry, operand);
  if (!asked || has_step_at(inquiry, operand, *asked)) return;
  inquiry.found.add(trace::EvidenceKind::computed_alike_moved_at, operand, *moved, "");
  inquiry.found.add(trace::EvidenceKind::asked_apart_at, operand, *asked, "");
}

}  // namespace

void find_made_alike(const Inquiry& inquiry, std::size_t operand) {
  find_computed_alike(inquiry, operand);
  const trace::LineageId origin = origin_of(inquiry.operands[operand].lineage);
  const trace::LineageNode made = runtime.recorder->lineage(origin);
  if (made.how != trace::How::created || made.device != inquiry.operands[operand].device || made.calls == 0) return;
  bool told = false;
  visit_lineage_nodes([&](trace::LineageId, const trace::LineageNode& move) {
    if (told || move.how != trace::How::moved || !inquiry.is_wanted(operand, move.device)) return;
    const trace::LineageId moved = origin_of(move.parent);
    if (moved == origin || !made_alike(made, runtime.recorder->lineage(moved))) return;
    const auto call = parting(made, runtime.recorder->lineage(moved));
    if (!call) return;
    inquiry.found.add(trace::EvidenceKind::made_alike_moved_at, operand, runtime.recorder->site(move.site).user, "");
    inquiry.found.add(trace::EvidenceKind::asked_apart_at, operand, *call, "");
    told = true;
  });
}

}  // namespace devsan::hooks
