// A constructor moves one module that it is given, and keeps another as it is: whoever makes the object cannot know
// that the one is looked after and the other is not.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> module_kept_as_given(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_weight(pair->odd) || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* kept = place_of(pair->odd, trace::EvidenceKind::kept_as_given_at, finding);
  const Evidence* beside = evidence_of(pair->odd, trace::EvidenceKind::kept_beside_moved_at);
  if (kept == nullptr || beside == nullptr) return std::nullopt;
  const std::string attribute = "`self." + std::string(attribute_of_path(kept->text)) + "`";
  const std::string edit = assigned_after_move(kept->at, device_at(kept->at, pair->wanted, finding));
  return Explanation{
      cause_at(kept->at, pair->odd,
               mention_first(pair->odd) + " is a " + std::string(name_of(pair->odd.is)) + " of the module that a `" +
                   type_of_path(kept->text) + "` keeps as " + attribute + " here, as it was given, on " +
                   spoken_device(pair->odd.device) + ". " + short_place(beside->at) + " moves `self." + beside->text +
                   "` to " + pair->wanted.device + "; nothing moves this one."),
      Fix{kept->at.file, kept->at.line,
          "Move it here, too" + (edit.empty() ? ", with `.to('" + pair->wanted.device + "')`." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
