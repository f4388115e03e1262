// `Module.to()` moves parameters, buffers and child modules. A tensor kept as a plain attribute, or inside a list, dict
// or object that is one, stays where it was made.
#include "report/call_text.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Where the attribute is stored; else, where its value was made. An entry of a list or dict may come later than that
// itself: where the function that stores the attribute does not put it there, it is made anew now and then, and the
// attribute is not to blame. Of several lines that store it, the constructor's is where a buffer is registered.
const Frame* place_to_change(const Operand& odd, const Evidence& held, const Finding& finding) {
  const Evidence* stored = place_of(odd, trace::EvidenceKind::attribute_set_at, finding);
  if (stored == nullptr || !held.text.starts_with(stored->text)) {
    const Evidence* declared = store_of(odd, held, finding);
    if (declared != nullptr) stored = declared;
  }
  if (const LineageStep* entry = stored != nullptr ? stored_as_entry(odd, finding) : nullptr) {
    return same_function(entry->at, stored->at) ? &entry->at : nullptr;
  }
  if (stored != nullptr) return &stored->at;
  const LineageStep* arrival = arrival_of(odd);
  return arrival != nullptr && is_changeable(arrival->at, finding) ? &arrival->at : nullptr;
}

// `self.gamma = nn.Parameter(value).to(device)` keeps what `.to()` made, and that is no Parameter.
bool moves_parameter(const Frame& place) {
  const auto stored = split_assignment(place.source);
  const auto call = stored ? split_call(stored->value) : std::nullopt;
  return call && call->receiver.ends_with(')') && call->receiver.find("Parameter(") != call->receiver.npos &&
         calls_move(stored->value.substr(call->receiver.size()));
}

}  // namespace

std::optional<Explanation> attribute_not_buffer(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* held = evidence_of(pair->odd, trace::EvidenceKind::held_by_module);
  const Frame* place = held != nullptr ? place_to_change(pair->odd, *held, finding) : nullptr;
  // One that the failing function itself sets is made anew in each call: it only has to be made elsewhere.
  if (place == nullptr || same_function(*place, *finding.where)) return std::nullopt;
  const std::optional<SourceAttribute> source = source_attribute(pair->odd, *place, attribute_of_path(held->text));
  if (source) place = &source->step->at;
  RootCause cause = cause_at(*place, pair->odd,
                             mention_first(pair->odd) + (source ? " is made of `self." + source->name + "`," : " is") +
                                 " a plain attribute of the module `" + type_of_path(held->text) +
                                 "`: moving the module moves its parameters and buffers only, and this stays on " +
                                 spoken_device(pair->odd.device) + ".");
  if (moves_parameter(*place)) {
    cause.why += " The Parameter that this line makes is not what it keeps: `.to()` returns a plain tensor.";
    return Explanation{
        std::move(cause),
        Fix{place->file, place->line,
            "Move the value, not the Parameter: `nn.Parameter(value.to(device))`. Then it is a parameter "
            "of the module, moves with it, and an optimizer is given it."}};
  }
  return Explanation{std::move(cause),
                     register_as_buffer(*place, source ? source->name : attribute_of_path(held->text))};
}

}  // namespace devsan::report::why
