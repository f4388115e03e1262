// What a helper makes on the host, its callers move: one of them has moved what it got, and the one that got the
// operand has not.
#include <algorithm>
#include <optional>
#include <vector>

#include "hooks/evidence/call_frames.h"
#include "hooks/evidence/evidence.h"
#include "hooks/origins/lineage.h"
#include "hooks/origins/lineage_nodes.h"
#include "hooks/process/runtime.h"

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
  return other.how == trace::How::created && other.op == one.op && other.device == one.device && other.site == one.site;
}

}  // namespace

void find_made_alike(const Inquiry& inquiry, std::size_t operand) {
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
