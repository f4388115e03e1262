// Its module has left the accelerator that it was on, and a plain attribute of the module has not: where the two meet
// on the CPU, the attribute is the one to change.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> module_left_attribute(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* held = evidence_of(pair->wanted, trace::EvidenceKind::held_by_module);
  const LineageStep* move = newest_move_of(pair->odd);
  const bool left = move != nullptr && moves_module(*move) && was_on(pair->odd, pair->wanted.device);
  const Frame* place = held != nullptr && left ? attribute_place(pair->wanted, *held, finding) : nullptr;
  if (place == nullptr || !pair->odd.on_cpu() || same_function(*place, *finding.where)) return std::nullopt;
  return Explanation{
      cause_at(*place, pair->wanted,
               mention_first(pair->wanted) + " is a plain attribute of the module `" + type_of_path(held->text) +
                   "`, stored here on " + pair->wanted.device + ". " + short_place(move->at) +
                   " has taken what it meets to " + spoken_device(pair->odd.device) +
                   " since: that moves its parameters and buffers only."),
      register_as_buffer(*place, attribute_of_path(held->text))};
}

}  // namespace devsan::report::why
