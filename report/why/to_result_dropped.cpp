// `Tensor.to()` and its kin return a copy and leave the tensor where it is. Called as a statement of its own, as one
// does with a module, the copy is made and dropped at once.
#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// "x.to(dev)" and "for x in batch: x.to(dev)", where that is all that the line does.
bool is_dropped(const Frame& place) {
  const std::string_view statement = statement_of(place.statement());
  return drops_result(place) || (statement.starts_with("for ") && statement.ends_with(": " + call_at(place)));
}

// "Keep the result: `x = x.to(dev)`."
std::string kept_result(const std::string& call) {
  const auto parts = split_call(call);
  const std::string receiver(parts ? parts->receiver : "");
  return "Keep the result: " +
         (receiver.empty() ? "assign it, and use it from there on." : "`" + receiver + " = " + call + "`.");
}

// `self.to_device(batch)`: a function of the program's own that returns copies.
std::optional<Explanation> dropped_by_caller(const Pair& pair, const Finding& finding) {
  const Evidence* dropped = place_of(pair.odd, trace::EvidenceKind::result_dropped_at, finding);
  const Evidence* copy = evidence_of(pair.odd, trace::EvidenceKind::copied_away);
  if (dropped == nullptr || copy == nullptr) return std::nullopt;
  return Explanation{
      cause_at(dropped->at, pair.odd,
               "`" + dropped->text + "` returns copies on " + copy->text + ", made in " + short_place(copy->at) +
                   ", and leaves " + mention(pair.odd) + " on " + spoken_device(pair.odd.device) +
                   ". What it returns is dropped here."),
      Fix{dropped->at.file, dropped->at.line, "Keep what `" + dropped->text + "` returns, and use it from there on."}};
}

// `for part in batch: part = part.to(device)`.
std::optional<Explanation> lost_in_loop(const Pair& pair, const Finding& finding) {
  const Evidence* loop = place_of(pair.odd, trace::EvidenceKind::rebound_in_loop_at, finding);
  const Evidence* copy = place_of(pair.odd, trace::EvidenceKind::copied_away, finding);
  if (loop == nullptr || copy == nullptr) return std::nullopt;
  return Explanation{
      cause_at(copy->at, pair.odd,
               "`" + loop->text + "`, the loop's own variable, gets the copy on " + copy->text +
                   " here, and loses it in the next turn. What " + short_place(loop->at) + " goes through keeps " +
                   mention(pair.odd) + " on " + spoken_device(pair.odd.device) + "."),
      Fix{copy->at.file, copy->at.line, "Store the copy where `" + loop->text + "` was taken from, or in a new list."}};
}

// What says the device that it was made on should have been on another one.
std::optional<Explanation> dropped_of_device(const Pair& pair, const Finding& finding) {
  const Evidence* copy = place_of(pair.odd, trace::EvidenceKind::device_value_copied_at, finding);
  if (copy == nullptr || pair.odd.lineage.empty() || !is_dropped(copy->at)) return std::nullopt;
  const std::string call = call_at(copy->at);
  return Explanation{cause_at(copy->at, pair.odd,
                              "`" + call + "` returns a copy on " + spoken_device(pair.wanted.device) +
                                  ", which is dropped here; the tensor itself stays on " +
                                  spoken_device(pair.odd.device) + ". " + mention_first(pair.odd) +
                                  " is made on its device, in " + short_place(asking_step(pair.odd).at) + "."),
                     Fix{copy->at.file, copy->at.line, kept_result(call)}};
}

}  // namespace

std::optional<Explanation> to_result_dropped(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  if (auto lost = lost_in_loop(*pair, finding)) return lost;
  if (auto dropped = dropped_of_device(*pair, finding)) return dropped;
  for (const Evidence& copy : pair->odd.evidence) {
    const bool of_source = copy.kind == trace::EvidenceKind::source_copied_at;
    if (!of_source && copy.kind != trace::EvidenceKind::copied_away) continue;
    if (!is_changeable(copy.at, finding) || !is_dropped(copy.at)) continue;
    const std::string call = call_at(copy.at);
    // `optimizer.load_state_dict(state)` copies into what it has: there is no result.
    if (call.find("load_state_dict(") != call.npos) continue;
    RootCause cause = cause_at(copy.at, pair->odd,
                               "`" + call + "` returns a copy on " + copy.text + " and leaves the tensor on " +
                                   spoken_device(pair->odd.device) + ". The copy is dropped here" +
                                   (of_source ? ", and " + mention(pair->odd) + " is computed from the tensor." : "."));
    return Explanation{std::move(cause), Fix{copy.at.file, copy.at.line, kept_result(call)}};
  }
  return dropped_by_caller(*pair, finding);
}

}  // namespace devsan::report::why
