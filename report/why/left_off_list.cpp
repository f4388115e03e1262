// Modules are moved one by one, as a list, a table or a call names them. One that it leaves out stays where it was
// made.
#include <algorithm>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Then the list names parts of a model that is made after it, by their names in that.
bool names_parts(const Operand& weight, const Evidence& listed) {
  const Evidence* model = evidence_of(weight, trace::EvidenceKind::module_bound_at);
  return model != nullptr && model->text != listed.text && same_function(model->at, listed.at) &&
         model->at.line > listed.at.line;
}

// What the listing function makes only after the list, that cannot name.
bool is_made_later(const Operand& weight, const Frame& listed) {
  const auto later = [&](const Frame& at) { return same_function(at, listed) && at.line > listed.line; };
  return !weight.lineage.empty() &&
         (later(weight.lineage.back().at) || std::ranges::any_of(weight.lineage.back().calls, later));
}

// `model.embed = model.embed.to(device)`, and a line like it for each of the others.
std::optional<Explanation> not_named(const Pair& pair, const Finding& finding) {
  const Evidence* named = place_of(pair.odd, trace::EvidenceKind::modules_named_at, finding);
  const Evidence* moved = evidence_of(pair.odd, trace::EvidenceKind::modules_moved_at);
  if (named == nullptr || moved == nullptr || is_made_later(pair.odd, named->at)) return std::nullopt;
  return Explanation{cause_at(named->at, pair.odd,
                              "This line moves `" + moved->text + "` to " + spoken_device(pair.wanted.device) +
                                  ", as other lines do with other parts of the same model. No line moves `" +
                                  named->text + "`, which " + mention(pair.odd) + " comes from: it stays on " +
                                  spoken_device(pair.odd.device) + "."),
                     Fix{named->at.file, named->at.line, "Move `" + named->text + "` beside it."}};
}

}  // namespace

std::optional<Explanation> left_off_list(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || was_moved(pair->odd)) return std::nullopt;
  if (auto named = not_named(*pair, finding)) return named;
  if (!is_weight(pair->odd)) return std::nullopt;
  const Evidence* listed = place_of(pair->odd, trace::EvidenceKind::modules_listed_at, finding);
  const Evidence* moved = evidence_of(pair->odd, trace::EvidenceKind::modules_moved_at);
  if (listed == nullptr || moved == nullptr) return std::nullopt;
  if (is_made_later(pair->odd, listed->at) && !names_parts(pair->odd, *listed)) return std::nullopt;
  const std::string device = spoken_device(pair->wanted.device);
  const std::string who = same_line(listed->at, moved->at) ? "This line moves" : short_place(moved->at) + " moves";
  return Explanation{cause_at(listed->at, pair->odd,
                              who + " the modules that are named here to " + device + ", `" + moved->text +
                                  "` among them. `" + listed->text + "`, which owns " + mention(pair->odd) +
                                  ", is not: it stays on " + spoken_device(pair->odd.device) + "."),
                     Fix{listed->at.file, listed->at.line, "Name `" + listed->text + "` here, too."}};
}

}  // namespace devsan::report::why
