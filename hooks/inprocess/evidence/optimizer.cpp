// Where the program itself puts tensors into an optimizer's state.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/optimizer_state.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// `optimizer.state[order[index]] = value` and `optimizer.state[p].update(saved)`, whatever the parameter is written as;
// by no other name than `key`.
bool writes_state(std::string_view statement, std::string_view key) {
  if (statement.find(".__setstate__(") != statement.npos) return true;
  for (const ContainerPut& put : puts_in(statement)) {
    const std::string_view named = text_of_key(put.key);
    const bool of_parameter = put.container.find(".state[") != std::string::npos;
    const bool of_all = put.container.ends_with(".state");
    if ((of_parameter || of_all) && (named.empty() || named == key)) return true;
  }
  return false;
}

// `state.setdefault('key', torch.zeros_like(p))`, by whatever name.
bool may_have_made(std::string_view statement, std::string_view key) {
  return std::ranges::any_of(puts_in(statement), [key](const auto& put) { return text_of_key(put.key) == key; });
}

// The lines that put something into the state of an optimizer.
class StateStores {
 public:
  // `made` is where the value was made.
  StateStores(const void* key, const trace::Position& made) : key_(key), name_(text_of(key)), made_(made) {}

  const std::vector<Candidate>& found() const { return found_; }

  // `….state[parameter] = value` and `state[…]['key'] = value`; or `state[key] = value` with a variable, which is
  // certain of nothing.
  void look_in(const void* code) {
    if (!mentions_text(code, "state")) return;
    const ByteCode byte_code(code);
    const auto& all = byte_code.instructions();
    const SourceLines lines(files_.whole(position_of(code, 0).file));
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (loads_name(all[k], "state")) look_at(lines, position_of(code, all[k].offset));
      if (k == 0 || all[k].operation != Operation::store_item) continue;
      const Instruction& subscript = all[k - 1];
      const bool by_key = subscript.operation == Operation::load_constant && same_name(subscript.operand, key_);
      if (!by_key && subscript.operation != Operation::load_variable) continue;
      const bool into_state =
          k >= 2 && all[k - 2].operation == Operation::load_attribute && is_name(all[k - 2].operand, "state");
      found_.push_back({position_of(code, all[k].offset), by_key || into_state});
    }
  }

 private:
  // What a line makes and puts there has it in its history.
  void look_at(const SourceLines& lines, const trace::Position& at) {
    const std::string statement = statement_at(lines, at.line);
    if (writes_state(statement, name_)) {
      found_.push_back({at, true});
    } else if (same_line(at, made_) && may_have_made(statement, name_)) {
      found_.push_back({at, false});
    }
  }

  SourceFiles files_;
  const void* key_;
  const std::string name_;
  const trace::Position made_;
  std::vector<Candidate> found_;
};

}  // namespace

void find_optimizer_state(const Inquiry& inquiry, std::size_t operand) {
  const OptimizerState state = optimizer_state(inquiry.search, inquiry.identities[operand].object);
  if (state.optimizer == nullptr) return;
  const trace::LineageNode made = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  StateStores stores(state.key, runtime.recorder->site(made.site).user);
  for (const void* code : inquiry.own_code.code()) stores.look_in(code);
  for (const void* function : functions_of_type(type_of(state.optimizer))) {
    const void* code = code_of_function(function);
    // A library's optimizers are looked through by their type alone.
    if ((code_table.classify(code) & kLibraryCode) != 0) stores.look_in(code);
  }
  const auto at = choose(inquiry, operand, stores.found());
  inquiry.found.add(trace::EvidenceKind::optimizer_state, operand, at.value_or(trace::Position{}), state.name);
}

}  // namespace devsan::hooks
