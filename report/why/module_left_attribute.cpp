// Its module has left the accelerator that it was on, and a plain attribute of the module has not: where the two meet
// on the CPU, the attribute is the one to change.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// The move of a module that brought the odd operand, or what it was computed with, from beside the attribute; null
// without one.
const Frame* move_of_met(const Pair& pair) {
  const LineageStep* move = newest_move_of(pair.odd);
  const bool left = move != nullptr && moves_module(*move) && was_on(pair.odd, pair.wanted.device);
  return left ? &move->at : nullptr;
}

// Where the attribute is stored; of one that the failing function makes when it needs it, where it is declared.
const Frame* stored_at(const Operand& attribute, const Evidence& held, const Finding& finding) {
  const Frame* place = attribute_place(attribute, held, finding);
  if (place == nullptr || !same_function(*place, *finding.where)) return place;
  const Evidence* declared = place_of(attribute, trace::EvidenceKind::declared_at, finding);
  return declared != nullptr && declared->text == held.text ? &declared->at : nullptr;
}

}  // namespace

std::optional<Explanation> module_left_attribute(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* held = evidence_of(pair->wanted, trace::EvidenceKind::held_by_module);
  const Frame* met = move_of_met(*pair);
  // What it meets may be new: then the weights of the module that keeps the attribute tell.
  const Evidence* holder = holder_moved_to(pair->wanted, pair->odd.device);
  const Frame* move = met != nullptr ? met : holder != nullptr ? &holder->at : nullptr;
  const Frame* place = held != nullptr && move != nullptr ? stored_at(pair->wanted, *held, finding) : nullptr;
  if (place == nullptr || !pair->odd.on_cpu()) return std::nullopt;
  const bool entry = held->text.ends_with(']');
  return Explanation{
      cause_at(*place, pair->wanted,
               mention_first(pair->wanted) + (entry ? " is an entry of" : " is") +
                   " a plain attribute of the module `" + type_of_path(held->text) + "`, stored here on " +
                   pair->wanted.device + ". " + short_place(*move) + " has taken " +
                   (met != nullptr ? "what it meets" : "the module") + " to " + spoken_device(pair->odd.device) +
                   " since: that moves its parameters and buffers only."),
      register_as_buffer(*place, attribute_of_path(held->text))};
}

}  // namespace devsan::report::why
