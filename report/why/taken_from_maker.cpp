// `tokens = tokenize(texts)`: a helper makes a tensor of Python's values, and knows of no device. The object that takes
// it keeps one, and is where it has to be moved.
#include <algorithm>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// `mask = to_apply.view(-1, 1)`, behind functions that know of no device: the function that fails prepares here what it
// was given, beside what is on an accelerator.
std::optional<Explanation> prepared_for_use(const Pair& pair, const Finding& finding) {
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  // Who was asked for a device is followed by another rule.
  if (bound == nullptr || evidence_of(pair.odd, trace::EvidenceKind::device_from) != nullptr) return std::nullopt;
  const Frame& made = pair.odd.lineage.back().at;
  // A method of the same object knows what that knows: it is to be asked.
  const bool own =
      class_of(made) == class_of(bound->at) &&
      find_name(bound->at.statement(), "self." + std::string(own_function(made))) != std::string_view::npos;
  const bool here = same_function(bound->at, *finding.where) && !same_line(bound->at, *finding.where) &&
                    bound->at.function != "<module>" && !same_function(made, bound->at) && !own;
  const std::string& statement = bound->at.statement();
  if (!here || !split_assignment(statement) || only_takes_apart(statement)) return std::nullopt;
  const std::string edit = assigned_after_move(bound->at, device_at(bound->at, pair.wanted, finding));
  return Explanation{
      cause_at(bound->at, pair.odd,
               short_place(made) +
                   " makes it, where nothing knows of a device. This line prepares it "
                   "for use, on the CPU, beside what is on " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{bound->at.file, bound->at.line,
          "Bring it to " + spoken_device(pair.wanted.device) + " here" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

// `generate(model, ids=encode("text"))`: a call gives what another one makes of Python's values straight on.
std::optional<Explanation> handed_straight_on(const Evidence& unaware, const Pair& pair, const Finding& finding) {
  const LineageStep& made = pair.odd.lineage.back();
  if (made.calls.empty()) return std::nullopt;
  const std::string called = std::string(trace::own_name(unaware.text)) + "(";
  const Frame& call = made.calls.front();
  const std::string& statement = call.statement();
  const std::size_t at = find_name(statement, called);
  // As an argument of another call, which does something with it: no assignment, and no method of what it gives.
  const std::string_view before = std::string_view(statement).substr(0, std::min(at, statement.size()));
  const bool argument = at != statement.npos && before.find(" = ") == before.npos && !before.empty() &&
                        (before.ends_with('=') || before.ends_with('(') || before.ends_with(", "));
  const bool waits = is_running(call, finding) && !same_line(call, *finding.where);
  if (!argument || !waits || !is_changeable(call, finding)) return std::nullopt;
  const Frame place = line_of_argument(call, called);
  return Explanation{cause_at(place, pair.odd,
                              short_place(made.at) + " makes " + mention(pair.odd) +
                                  ", or what it is computed from, where nothing knows of a device. This line hands it "
                                  "on as it is, on the CPU; what it meets is on " +
                                  spoken_device(pair.wanted.device) + "."),
                     Fix{place.file, place.line, "Move what the call gives: `.to('" + pair.wanted.device + "')`."}};
}

// `ids = pad_sequence(tensors)`: a function makes a batch of what another one made, each by itself, and hands it on as
// it is.
std::optional<Explanation> joined_from_maker(const Pair& pair, const Finding& finding) {
  const LineageStep& joined = pair.odd.lineage.front();
  const LineageStep& made = pair.odd.lineage.back();
  const bool waits = is_running(joined.at, finding) && is_changeable(joined.at, finding) &&
                     !same_function(joined.at, *finding.where) && split_assignment(joined.at.statement());
  if (!waits || !joins_entries(joined) || is_running(made.at, finding) || made.calls.empty()) return std::nullopt;
  const Frame& asked = made.calls.front();
  const bool one_by_one = asked.statement().find(" for ") != std::string::npos &&
                          std::ranges::any_of(made.calls, [&](const Frame& call) { return is_running(call, finding); });
  if (!one_by_one || made.how != trace::How::created) return std::nullopt;
  const std::string edit = assigned_after_move(joined.at, device_at(joined.at, pair.wanted, finding));
  return Explanation{
      cause_at(joined.at, pair.odd,
               "This line puts " + mention(pair.odd) + " together of what " + short_place(made.at) +
                   " makes on the CPU, one by one. It goes on as it is; what it meets is on " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{joined.at.file, joined.at.line,
          "Move all of it at once here, to " + pair.wanted.device + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

// `groups = cluster(coords.cpu().numpy())`: the line that brings a value to the host for a function takes what that
// makes of it.
std::optional<Explanation> made_of_brought(const Pair& pair, const Finding& finding) {
  const LineageStep& made = pair.odd.lineage.back();
  if (made.how != trace::How::created || made.calls.empty()) return std::nullopt;
  const Frame& asked = made.calls.front();
  const std::string call = call_at(asked);
  const std::string function = std::string(trace::own_name(made.at.function)) + "(";
  const std::size_t open = std::min(call.find(function), call.size());
  const bool brings = trace::brings_to_host(std::string_view(call).substr(open));
  if (open == call.size() || !brings || !split_assignment(asked.statement()) || !is_changeable(asked, finding) ||
      same_line(asked, *finding.where)) {
    return std::nullopt;
  }
  const std::string edit = assigned_after_move(asked, device_at(asked, pair.wanted, finding));
  return Explanation{
      cause_at(asked, pair.odd,
               "This line brings a value to the host for `" + function + "…)`, which makes " + mention(pair.odd) +
                   " of it there, in " + short_place(made.at) + ". It is not brought back; what it meets is on " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{asked.file, asked.line, "Bring the result back here" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

}  // namespace

std::optional<Explanation> taken_from_maker(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd) || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  if (pair->odd.lineage.empty() || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* unaware = evidence_of(pair->odd, trace::EvidenceKind::made_unaware_at);
  if (unaware != nullptr && !is_running(pair->odd.lineage.back().at, finding)) {
    if (auto handed = handed_straight_on(*unaware, *pair, finding)) return handed;
    if (auto prepared = prepared_for_use(*pair, finding)) return prepared;
  }
  if (auto brought = made_of_brought(*pair, finding)) return brought;
  if (auto joined = joined_from_maker(*pair, finding)) return joined;
  const Evidence* taken = place_of(pair->odd, trace::EvidenceKind::taken_from_maker_at, finding);
  if (taken == nullptr) return std::nullopt;
  const std::string edit = assigned_after_move(taken->at, taken->text);
  return Explanation{
      cause_at(taken->at, pair->odd,
               short_place(pair->odd.lineage.back().at) + " makes " + mention(pair->odd) +
                   ", or what it is computed from, and is told no device. This line takes it as it is, "
                   "on the CPU, in an object that works on `" +
                   taken->text + "`."),
      Fix{taken->at.file, taken->at.line,
          "Move it where it is taken" + (edit.empty() ? ", to `" + taken->text + "`." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
