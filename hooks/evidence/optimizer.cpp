// Where the program itself puts tensors into an optimizer's state.
#include <string_view>
#include <vector>

#include "hooks/evidence/evidence.h"
#include "hooks/names/optimizer_state.h"
#include "hooks/origins/sites.h"
#include "hooks/python/byte_code.h"
#include "hooks/python/code_table.h"
#include "hooks/source/python_text.h"
#include "hooks/source/source_files.h"

namespace devsan::hooks {

namespace {

// `optimizer.state[order[index]] = value`: whatever the parameter is written as.
bool writes_state(std::string_view line) {
  constexpr std::string_view kState = ".state[";
  const std::size_t at = line.find(kState);
  const std::size_t close = at != line.npos ? closing_of(line, at + kState.size() - 1) : line.npos;
  if (close == line.npos) return false;
  const std::string_view behind = trimmed(line.substr(close + 1));
  return behind.starts_with('=') && !behind.starts_with("==");
}

// `….state[parameter] = value` and `state[…]['key'] = value`; or `state[key] = value` with a variable, which is certain
// of nothing.
void add_stores(SourceFiles& files, std::vector<Candidate>& candidates, const void* code, const void* key) {
  if (!mentions_text(code, "state")) return;
  const ByteCode byte_code(code);
  const auto& all = byte_code.instructions();
  for (std::size_t k = 1; k < all.size(); ++k) {
    if (all[k].operation != Operation::store_item) continue;
    const Instruction& subscript = all[k - 1];
    const bool by_key = subscript.operation == Operation::load_constant && same_name(subscript.operand, key);
    const trace::Position at = position_of(code, all[k].offset);
    const bool written = subscript.operation == Operation::other && writes_state(files.line(at.file, at.line));
    if (!by_key && !written && subscript.operation != Operation::load_variable) continue;
    const bool into_state =
        k >= 2 && all[k - 2].operation == Operation::load_attribute && is_name(all[k - 2].operand, "state");
    candidates.push_back({at, by_key || into_state || written});
  }
}

}  // namespace

void find_optimizer_state(const Inquiry& inquiry, std::size_t operand) {
  const OptimizerState state = optimizer_state(inquiry.search, inquiry.identities[operand].object);
  if (state.optimizer == nullptr) return;
  SourceFiles files;
  std::vector<Candidate> candidates;
  for (const void* code : inquiry.own_code.code()) add_stores(files, candidates, code, state.key);
  for (const void* function : functions_of_type(type_of(state.optimizer))) {
    const void* code = code_of_function(function);
    // A library's optimizers are looked through by their type alone.
    if ((code_table.classify(code) & kLibraryCode) != 0) add_stores(files, candidates, code, state.key);
  }
  const auto at = choose(inquiry, operand, candidates);
  inquiry.found.add(trace::EvidenceKind::optimizer_state, operand, at.value_or(trace::Position{}), state.name);
}

}  // namespace devsan::hooks
