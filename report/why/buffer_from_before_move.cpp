// `Module.to()` makes new tensors of a module's buffers. Who keeps one of before, under a second name or in a dict of
// buffers taken early, keeps it on the old device; and the module itself gets it back where that is stored again, or
// swapped in as `torch.func.functional_call` does.
#include <algorithm>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// What keeps it: a container, or an object such as a distribution that was made of it. A plain attribute of a module is
// another matter.
const Evidence* keeper_of(const Operand& odd, const Finding& finding) {
  const Evidence* kept = place_of(odd, trace::EvidenceKind::kept_from_before_move, finding);
  if (kept != nullptr || evidence_of(odd, trace::EvidenceKind::held_by_object) == nullptr) return kept;
  return place_of(odd, trace::EvidenceKind::attribute_set_at, finding);
}

// `self._center = Center(self.center)`, in the module that has the buffer: the constructor of the helper keeps what it
// is given. Null where it is another case.
const Evidence* helper_made_at(const Operand& odd, const Evidence& kept, const Finding& finding) {
  const std::string type(type_of_path(kept.text));
  if (!keeps_argument(kept.at, "self." + std::string(attribute_of_path(kept.text)))) return nullptr;
  const auto makes = [&](const Evidence& one) {
    return one.kind == trace::EvidenceKind::attribute_set_at && is_changeable(one.at, finding) &&
           one.at.statement().find(type + "(self.") != std::string::npos;
  };
  const auto found = std::ranges::find_if(odd.evidence, makes);
  return found != odd.evidence.end() ? &*found : nullptr;
}

}  // namespace

std::optional<Explanation> buffer_from_before_move(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* move = evidence_of(pair->odd, trace::EvidenceKind::moved_with_module);
  const Evidence* kept = keeper_of(pair->odd, finding);
  if (move == nullptr || kept == nullptr || move->text != pair->wanted.device) return std::nullopt;
  if (const Evidence* helper = helper_made_at(pair->odd, *kept, finding)) kept = helper;
  const std::string keeper = kept->text.empty() ? "what this line keeps is" : "`" + kept->text + "` keeps";
  RootCause cause = cause_at(kept->at, pair->odd,
                             mention_first(pair->odd) + " is the tensor from before " + short_place(move->at) +
                                 " moved the module to " + move->text + ": that makes new tensors of buffers, and " +
                                 keeper + " the old one, on " + spoken_device(pair->odd.device) + ".");
  return Explanation{std::move(cause),
                     Fix{kept->at.file, kept->at.line,
                         "Take it from the module when that has moved, behind " + short_place(move->at) +
                             "; or move it where it is put back: `.to('" + pair->wanted.device + "')`."}};
}

}  // namespace devsan::report::why
