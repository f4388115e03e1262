// What a helper makes on the host, its callers move: one of them has moved what it got, and the one that got the
// operand has not.
#include <algorithm>
#include <optional>
#include <vector>

#include "hooks/evidence.h"
#include "hooks/lineage_nodes.h"
#include "hooks/runtime.h"

namespace devsan::hooks {

namespace {

trace::LineageId origin_of(trace::LineageId id) {
  for (int steps = 0; steps <= trace::kMaxLineageDepth; ++steps) {
    const trace::LineageId parent = runtime.recorder->lineage(id).parent;
    if (parent == trace::LineageId::none) break;
    id = parent;
  }
  return id;
}

// Innermost first.
std::vector<trace::SiteId> calls_of(const trace::LineageNode& node) {
  std::vector<trace::SiteId> calls;
  for (trace::LineageId id{node.calls}; id != trace::LineageId::none && calls.size() < trace::kMaxCalls;) {
    const trace::LineageNode call = runtime.recorder->lineage(id);
    if (call.how != trace::How::called) break;
    calls.push_back(call.site);
    id = call.parent;
  }
  return calls;
}

bool same_line(const trace::Position& one, const trace::Position& other) {
  return one.file == other.file && one.line == other.line;
}

// The innermost of the calls that led to `ours` and not to `others`, where they part; none where it cannot be told.
std::optional<trace::Position> parting(const trace::LineageNode& ours, const trace::LineageNode& others) {
  const std::vector<trace::SiteId> mine = calls_of(ours);
  const std::vector<trace::SiteId> theirs = calls_of(others);
  const auto ends = std::ranges::mismatch(mine, theirs);
  if (ends.in1 == mine.end() || ends.in2 == theirs.end()) return std::nullopt;
  const trace::Position at = runtime.recorder->site(*ends.in1).user;
  return same_line(at, runtime.recorder->site(*ends.in2).user) ? std::nullopt : std::optional(at);
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
