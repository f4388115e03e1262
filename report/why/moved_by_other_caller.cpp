// A helper makes its tensors on the host, as tokenizers and datasets do, and leaves it to its callers to move them. One
// does, and the one that asked for this value does not.
#include <string>

#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> moved_by_other_caller(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  const Evidence* moved = place_of(pair->odd, trace::EvidenceKind::made_alike_moved_at, finding);
  const Evidence* asked = place_of(pair->odd, trace::EvidenceKind::asked_apart_at, finding);
  if (arrival == nullptr || moved == nullptr || asked == nullptr || is_running(arrival->at, finding))
    return std::nullopt;
  if (is_weight(pair->odd) || !was_never_moved(pair->odd) || drops_result(asked->at)) return std::nullopt;
  // What an object keeps is no value that its maker has asked for.
  if (is_constructor(arrival->at) && arrival->at.function != "<module>") return std::nullopt;
  // A maker that moves what it makes does so for everybody, to the device that it is told.
  if (same_line(moved->at, asked->at) || same_function(moved->at, arrival->at)) return std::nullopt;
  const std::string made = short_place(arrival->at);
  const std::string edit = assigned_after_move(asked->at, device_at(asked->at, pair->wanted, finding));
  return Explanation{
      cause_at(asked->at, pair->odd,
               mention_first(pair->odd) + " is what this call got from " + made + ", which makes it on the CPU. " +
                   short_place(moved->at) + " moves what it got from there to " + pair->wanted.device +
                   "; here nothing does."),
      Fix{asked->at.file, asked->at.line,
          "Move it here, too" + (edit.empty() ? ", to " + pair->wanted.device : ": `" + edit + "`") + "."}};
}

}  // namespace devsan::report::why
