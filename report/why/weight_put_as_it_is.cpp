// Adapters that are swapped in, averaged weights that are put back: a line gives a module that is on an accelerator a
// weight from elsewhere, and forgets to move it.
#include <string>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {

namespace {

// `policy = Policy().to(device)`: the module was brought where it is used, whatever weights it has been given since. A
// weight that is made in the same line has no other story.
bool is_made_there(const Pair& pair, const Frame& put, const Finding& finding) {
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::module_bound_at, finding);
  if (bound == nullptr || same_line(bound->at, put) || !calls_move(bound->at.statement())) return false;
  const LineageStep* arrival = arrival_of(pair.odd);
  return arrival != nullptr && !same_line(arrival->at, bound->at);
}

// `p.data = shadow[name]`: what stands in the module is a copy, and no weight that the module was made with.
const LineageStep* copy_of_weight(const Operand& weight) {
  if (weight.lineage.size() < 2 || !was_never_moved(weight)) return nullptr;
  const LineageStep& newest = weight.lineage.front();
  const bool copied = newest.how == trace::How::derived && trace::operator_base_name(newest.op) == "clone";
  return copied && newest.within.empty() ? &newest : nullptr;
}

}  // namespace

std::optional<Explanation> weight_put_as_it_is(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_weight(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  const Evidence* put = place_of(pair->odd, trace::EvidenceKind::weight_put_at, finding);
  const bool elsewhere = model_is_elsewhere(pair->odd);
  const bool came = was_on(pair->odd, pair->wanted.device);
  if (put == nullptr) return std::nullopt;
  const LineageStep* copy = copy_of_weight(pair->odd);
  if (!elsewhere && !came && copy == nullptr && !is_made_there(*pair, put->at, finding)) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  const std::string from = arrival != nullptr && !same_line(arrival->at, put->at)
                               ? ", where " + short_place(arrival->at) + " left it"
                               : std::string();
  return Explanation{
      cause_at(put->at, pair->odd,
               "This line makes it the weight `" + put->text + "` of a module. It is on " +
                   spoken_device(pair->odd.device) + from +
                   (elsewhere         ? "; other weights of the model are not."
                    : came            ? "; the value that it comes from was on " + pair->wanted.device + "."
                    : copy != nullptr ? "; it is a copy of a weight, taken in " + short_place(copy->at) + "."
                                      : "; its module was brought to an accelerator when it was made.")),
      Fix{put->at.file, put->at.line,
          "Move it here to " + spoken_device(pair->wanted.device) +
              ": with the device of the weight that it replaces."}};
}

}  // namespace devsan::report::why
