#include "hooks/torch_bridge/examine.h"

#include <exception>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/device_source.h"
#include "hooks/inprocess/evidence/home_device.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/names.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

trace::OddOperands odd_among(std::span<const trace::OperandRecord> operands, const Failure& failure) {
  const auto text = [](trace::StringId id) { return runtime.recorder->string(id); };
  return trace::OddOperands(text(runtime.recorder->operator_name(failure.op)), text(failure.message), operands, text,
                            [&](trace::DeviceSlot slot) { return text(runtime.recorder->device_name(slot)); });
}

// A tensor with a name of its own among those that are right.
Met met_by_odd(std::span<const trace::OperandRecord> operands, const trace::OddOperands& odd, trace::SiteId site) {
  Met met{runtime.recorder->site(site).user, ""};
  for (const trace::OperandRecord& one : operands) {
    const std::string_view name = runtime.recorder->string(one.name);
    const bool variable = one.name_kind == trace::NameKind::local && is_identifier(name);
    if (variable && one.device == odd.wanted() && !odd.odd(one)) met.variable = name;
  }
  return met;
}

void collect_of_odd(const Inquiry& inquiry, std::size_t k) {
  find_holder(inquiry, k);
  find_binding(inquiry, k);
  find_given(inquiry, k);
  find_crossing(inquiry, k);
  find_attribute_stores(inquiry, k);
  find_modules(inquiry, k);
  find_forward_hooks(inquiry, k);
  find_hook_inputs(inquiry, k);
  find_optimizer_state(inquiry, k);
  find_default_argument(inquiry, k);
  find_stay(inquiry, k);
  find_copied_away(inquiry, k);
  find_source_moved(inquiry, k);
  find_source_copied(inquiry, k);
  find_moved_siblings(inquiry, k);
  find_own_move(inquiry, k);
  find_own_move_unused(inquiry, k);
  find_moved_children(inquiry, k);
  find_moved_parameters(inquiry, k);
  find_moved_modules(inquiry, k);
  find_kept_beside(inquiry, k);
  find_generator(inquiry, k);
  find_default_device(inquiry, k);
  find_entry_puts(inquiry, k);
  find_unpacked_entry(inquiry, k);
  find_cache_key(inquiry, k);
  find_taken_out(inquiry, k);
  find_weight_put(inquiry, k);
  find_returned(inquiry, k);
  find_collected(inquiry, k);
  find_closure_of_copy(inquiry, k);
  find_within_module(inquiry, k);
  find_weight_brought(inquiry, k);
  find_shared_module(inquiry, k);
  find_given_to_temporary(inquiry, k);
  find_ancestor(inquiry, k);
  find_made_alike(inquiry, k);
  find_first_variable(inquiry, k);
  find_drawn_loader(inquiry, k);
  find_device_value(inquiry, k);
  find_spread_model(inquiry, k);
  find_given_to_module(inquiry, k);
  find_unused_device(inquiry, k);
  find_host_work(inquiry, k);
  find_forward_call(inquiry, k);
  find_hook_on_list(inquiry, k);
  find_given_to_keep(inquiry, k);
  find_restored(inquiry, k);
  find_told_beside(inquiry, k);
  find_array_beside(inquiry, k);
  find_result_moved(inquiry, k);
  find_twin(inquiry, k);
  find_handed_back(inquiry, k);
  find_module_twin(inquiry, k);
  find_missing_hook(inquiry, k);
  find_came_through(inquiry, k);
}

// Of the others, which are right, it helps to know where they come from.
void collect_of_other(const Inquiry& inquiry, std::size_t k) {
  find_holder(inquiry, k);
  find_binding(inquiry, k);
  if (all_on_accelerators(inquiry)) find_given(inquiry, k);  // which of them is odd nobody knows
  find_attribute_stores(inquiry, k);
  find_modules(inquiry, k);
  find_default_device(inquiry, k);
  find_default_argument(inquiry, k);
  find_entry_puts(inquiry, k);
  find_closure_of_copy(inquiry, k);
  find_locals_elsewhere(inquiry, k);
  find_alone_on_device(inquiry, k);
  find_device_twin(inquiry, k);
  find_returned(inquiry, k);
  find_collected(inquiry, k);
  find_restored(inquiry, k);
  find_ancestor(inquiry, k);
  find_handed_back(inquiry, k);
  find_stay(inquiry, k);
  find_optimizer_state(inquiry, k);
  find_host_handover(inquiry, k);
  find_came_through(inquiry, k);
}

void collect(const Inquiry& inquiry, const Failure& failure) {
  const trace::OddOperands odd = odd_among(inquiry.operands, failure);
  for (std::size_t k = 0; k < inquiry.operands.size(); ++k) {
    if (odd.odd(inquiry.operands[k])) collect_of_odd(inquiry, k);
  }
  for (std::size_t k = 0; k < inquiry.operands.size(); ++k) {
    if (!odd.odd(inquiry.operands[k])) collect_of_other(inquiry, k);
  }
}

}  // namespace

void examine(const void* innermost, const void* waited_for, const Failure& failure, OperandList& operands,
             EvidenceList& evidence, Facts& facts) noexcept {
  try {
    ObjectSearch search(operands.records(), operands.identities(), failure.site);
    search.run(innermost);
    if (waited_for != nullptr) search.run_other_threads(waited_for);
    give_names(search, operands.records(), operands.identities(), failure.site);
    mark_home(search, innermost, operands.records(), operands.identities());
    if (!code_api().complete) return;
    facts = gather_facts(search, innermost, waited_for, operands.records(), operands.identities());
    follow_device_sources(search, innermost, operands.records());
    const OwnCode own_code(innermost);
    collect({innermost, failure.site, search, operands.records(), operands.identities(), own_code, evidence}, failure);
  } catch (const std::exception&) {  // names are worth no failure
  }
}

void examine_text(const Failure& failure, std::span<const trace::OperandRecord> operands,
                  EvidenceList& evidence) noexcept {
  try {
    const trace::OddOperands odd = odd_among(operands, failure);
    const Met met = met_by_odd(operands, odd, failure.site);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      find_device_source(operands[k], k, evidence);
      find_beside_move(operands[k], k, evidence);
      if (!odd.odd(operands[k])) continue;
      find_trace(operands[k], k, failure.site, evidence);
      find_module_constant(operands[k], k, evidence);
      find_cache_key_in_text(operands[k], k, evidence);
      find_cache_guard(operands[k], k, evidence);
      find_used_once(operands[k], k, evidence);
      find_device_not_given(operands[k], k, met, evidence);
      find_filling(operands[k], k, evidence);
      find_taken_from_maker(operands[k], k, evidence);
      find_brought_back(operands[k], k, evidence);
    }
  } catch (const std::exception&) {  // evidence is worth no failure
  }
}

void find_names(const void* thread, trace::SiteId site, OperandList& operands) noexcept {
  try {
    ObjectSearch search(operands.records(), operands.identities(), site);
    search.run(current_frame(thread));
    give_names(search, operands.records(), operands.identities(), site);
  } catch (const std::exception&) {  // names are worth no failure
  }
}

}  // namespace devsan::hooks
