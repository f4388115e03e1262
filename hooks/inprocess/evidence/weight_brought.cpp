// Weights that rest on the host while their model works elsewhere: its layers bring over what they need, each time
// anew. A weight that is used without that stays where they all are.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"

namespace devsan::hooks {

namespace {

using Tags = std::unordered_set<std::uint32_t>;

// A copy of one of the weights, made to be used where the operand is missed; it is not the module that was moved.
bool brings_weight(const Inquiry& inquiry, std::size_t operand, const trace::LineageNode& node, const Tags& weights) {
  return node.how == trace::How::moved && inquiry.is_wanted(operand, node.device) &&
         weights.contains(std::uint32_t(node.parent)) && !by_module(runtime.recorder->site(node.site));
}

// Whether a value was computed in a function that made such a copy, or called another one for it.
bool is_computed_beside(trace::LineageId value, const trace::LineageNode& copy) {
  const std::vector<trace::Position> calls = call_frames(runtime.recorder->site(copy.site).user, copy.calls);
  const std::size_t nearest = std::min<std::size_t>(calls.size(), 2);
  bool found = false;
  visit_steps(value, [&](const trace::LineageNode& step) {
    if (step.how != trace::How::derived || step.device != copy.device) return false;
    const trace::Position here = runtime.recorder->site(step.site).user;
    for (std::size_t k = 0; k < nearest; ++k) found = found || same_function(here, calls[k]);
    return !found;
  });
  return found;
}

// Where what an operand meets was computed with such a copy; none where it was not. A history follows one of several
// values, and that may be another one than the weight.
std::optional<trace::Position> brought_for_others(const Inquiry& inquiry, std::size_t operand, const Tags& weights) {
  std::optional<trace::Position> found;
  const auto visit_others = [&](const auto& visit) {
    for (std::size_t k = 0; k < inquiry.operands.size() && !found; ++k) {
      if (inquiry.operands[k].device != inquiry.operands[operand].device) visit(inquiry.operands[k].lineage);
    }
  };
  visit_others([&](trace::LineageId value) {
    visit_steps(value, [&](const trace::LineageNode& node) {
      if (brings_weight(inquiry, operand, node, weights)) found = runtime.recorder->site(node.site).user;
      return !found;
    });
  });
  visit_others([&](trace::LineageId value) {
    visit_lineage_nodes([&](trace::LineageId, const trace::LineageNode& node) {
      if (found || !brings_weight(inquiry, operand, node, weights) || !is_computed_beside(value, node)) return;
      found = runtime.recorder->site(node.site).user;
    });
  });
  return found;
}

// One weight may be brought over because somebody has met with that error before; several are a way to work.
bool brings_several(const Inquiry& inquiry, std::size_t operand, const Tags& weights) {
  int count = 0;
  visit_lineage_nodes([&](trace::LineageId, const trace::LineageNode& node) {
    if (brings_weight(inquiry, operand, node, weights)) ++count;
  });
  return count > 1;
}

}  // namespace

const Holding* weight_behind(const Inquiry& inquiry, std::size_t operand) {
  if (const Holding* owner = inquiry.owner_of(operand)) return owner;
  const c10::TensorImpl* tensor = inquiry.identities[operand].tensor;
  const c10::StorageImpl* storage = tensor != nullptr ? storage_of(tensor) : nullptr;
  const Holding* computed = nullptr;
  const trace::LineageNode newest = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  for (const auto& [object, holding] : inquiry.search.owned()) {
    const c10::TensorImpl* weight = inquiry.search.tensor_at(object);
    const c10::StorageImpl* other = weight != nullptr ? storage_of(weight) : nullptr;
    if (other == nullptr) continue;
    if (other == storage) return &holding;
    const bool made_of = newest.how == trace::How::derived && newest.parent != trace::LineageId::none &&
                         newest.parent == origin_table().find(other);
    if (made_of) computed = &holding;
  }
  return computed;
}

void find_weight_brought(const Inquiry& inquiry, std::size_t operand) {
  const std::vector<const Holding*> owners = inquiry.search.outwards(weight_behind(inquiry, operand));
  if (owners.empty()) return;
  const void* model = owners.back()->holder;
  if (Weights(inquiry.search, model).only() != inquiry.operands[operand].device) return;
  const Tags weights = weight_tags(inquiry.search, model);
  const auto brought = brought_for_others(inquiry, operand, weights);
  if (!brought || !brings_several(inquiry, operand, weights)) return;
  inquiry.found.add(trace::EvidenceKind::weight_brought_at, operand, *brought, type_name(model));
}

}  // namespace devsan::hooks
