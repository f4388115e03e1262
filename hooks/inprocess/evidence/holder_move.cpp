// A module that was moved away from a tensor which it keeps as a plain attribute: its weights went, and that stayed.
#include <optional>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"

namespace devsan::hooks {

namespace {

// The newest copy in the history of a weight, if it brought that from the operand's device to where it is missed.
std::optional<trace::LineageNode> move_of(const Inquiry& inquiry, std::size_t operand, const c10::TensorImpl& weight) {
  const auto move = inquiry.is_wanted(operand, device_slot_of(&weight)) ? newest_move_of(weight) : std::nullopt;
  if (!move || !by_module(runtime.recorder->site(move->site))) return std::nullopt;
  bool was_beside = false;
  visit_steps(move->parent, [&](const trace::LineageNode& older) {
    was_beside = older.device == inquiry.operands[operand].device;
    return !was_beside;
  });
  return was_beside ? move : std::nullopt;
}

// The one line that moved all weights at and below a module; `any` tells whether there are any.
std::optional<trace::LineageNode> move_of_all(const Inquiry& inquiry, std::size_t operand, const void* module,
                                              bool& any) {
  std::optional<trace::LineageNode> found;
  bool together = true;
  visit_weights(inquiry.search, module, [&](const c10::TensorImpl& weight) {
    any = true;
    const auto moved = move_of(inquiry, operand, weight);
    const auto place = [](const trace::LineageNode& node) { return runtime.recorder->site(node.site).user; };
    together = moved && (!found || same_line(place(*found), place(*moved)));
    found = moved;
    return together;
  });
  return together ? found : std::nullopt;
}

}  // namespace

std::optional<trace::LineageNode> move_of_holder(const Inquiry& inquiry, std::size_t operand, const void* module) {
  bool any = false;
  auto moved = move_of_all(inquiry, operand, module, any);
  for (const Holding* around : inquiry.search.outwards(inquiry.search.parent_module(module))) {
    if (any) break;  // a module without weights goes with the one that it is a part of
    moved = move_of_all(inquiry, operand, around->holder, any);
  }
  return moved;
}

void find_holder_move(const Inquiry& inquiry, std::size_t operand, const void* module) {
  const auto moved = move_of_holder(inquiry, operand, module);
  if (!moved) return;
  inquiry.found.add(trace::EvidenceKind::holder_moved_at, operand, runtime.recorder->site(moved->site).user,
                    runtime.recorder->string(runtime.recorder->device_name(moved->device)));
}

}  // namespace devsan::hooks
