// Where the program itself puts tensors into an optimizer's state.
#include "hooks/byte_code.h"
#include "hooks/code_table.h"
#include "hooks/evidence.h"
#include "hooks/optimizer_state.h"
#include "hooks/sites.h"

namespace devsan::hooks {

namespace {

// `….state[parameter] = value` and `state[…]['key'] = value`; or `state[key] = value` with a variable, which is certain
// of nothing.
void add_stores(std::vector<Candidate>& candidates, const void* code, const void* key) {
  if (!mentions_text(code, "state")) return;
  const ByteCode byte_code(code);
  const auto& all = byte_code.instructions();
  for (std::size_t k = 1; k < all.size(); ++k) {
    if (all[k].operation != Operation::store_item) continue;
    const Instruction& subscript = all[k - 1];
    const bool by_key = subscript.operation == Operation::load_constant && same_name(subscript.operand, key);
    if (!by_key && subscript.operation != Operation::load_variable) continue;
    const bool into_state =
        k >= 2 && all[k - 2].operation == Operation::load_attribute && is_name(all[k - 2].operand, "state");
    candidates.push_back({position_of(code, all[k].offset), by_key || into_state});
  }
}

}  // namespace

void find_optimizer_state(const Inquiry& inquiry, std::size_t operand) {
  const OptimizerState state = optimizer_state(inquiry.search, inquiry.identities[operand].object);
  if (state.optimizer == nullptr) return;
  std::vector<Candidate> candidates;
  for (const void* code : inquiry.own_code.code()) add_stores(candidates, code, state.key);
  for (const void* function : functions_of_type(type_of(state.optimizer))) {
    const void* code = code_of_function(function);
    // A library's optimizers are looked through by their type alone.
    if ((code_table.classify(code) & kLibraryCode) != 0) add_stores(candidates, code, state.key);
  }
  const auto at = choose(inquiry, operand, candidates);
  inquiry.found.add(trace::EvidenceKind::optimizer_state, operand, at.value_or(trace::Position{}), state.name);
}

}  // namespace devsan::hooks
