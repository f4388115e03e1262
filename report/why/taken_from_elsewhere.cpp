// A batch is taken apart and only some of it is moved; or a value comes from a library, a worker process or a file,
// whose inside nobody here would change. The line to change is where the program gets hold of it.
#include <algorithm>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Another operand came to its device in the same function: that is where this one could have been moved, too.
const LineageStep* sibling_moved(const Frame& place, const Pair& pair, const Finding& finding) {
  for (const Operand& operand : finding.operands) {
    if (operand.odd || operand.device != pair.wanted.device) continue;
    for (const LineageStep& step : operand.lineage) {
      if (step.how == trace::How::moved && same_function(step.at, place)) return &step;
    }
  }
  return nullptr;
}

// Who told it which device to be on, in so many words or by saying nothing, is nearer to the mistake.
bool decided_elsewhere(const Operand& odd, const Finding& finding) {
  const auto decided = decision_of(odd, trace::EvidenceKind::device_from, finding);
  return decided && is_final(*decided) && is_device_argument(*decided);
}

bool begins_here(const Operand& odd, const Finding& finding) {
  const LineageStep* arrival = arrival_of(odd);
  return arrival != nullptr && is_changeable(arrival->at, finding);
}

// `for mask, color in zip(masks, parse(colors)):`, where `parse` returns a list of what it makes: that is the line to
// change, and no data that the loop goes through.
bool made_by_helper_of_loop(const Operand& odd, const Frame& loop) {
  const LineageStep* arrival = arrival_of(odd);
  if (arrival == nullptr || arrival->how != trace::How::created) return false;
  const std::string called = std::string(own_function(arrival->at)) + "(";
  return statement_of(arrival->at.statement()).starts_with("return ") && !is_constructor(arrival->at) &&
         find_name(loop.statement(), called) != std::string_view::npos;
}

// `layer.init_state()` made it for `layer.forward()`: who takes it from the one to the other has nothing to add.
bool made_by_user(const Operand& odd, const Finding& finding) {
  const LineageStep* arrival = arrival_of(odd);
  if (arrival == nullptr || arrival->how != trace::How::created || !is_changeable(arrival->at, finding)) return false;
  const bool method = arrival->at.function.find('.') != std::string::npos;
  return method && arrival->at.file == finding.where->file && class_of(arrival->at) == class_of(*finding.where);
}

// `z = model(batch=data["index"])`, in a function that was given the script's data: it hands an entry on as it is.
std::optional<Explanation> entry_handed_on(const Pair& pair, const Finding& finding) {
  const LineageStep* arrival = arrival_of(pair.odd);
  const Evidence* given = place_of(pair.odd, trace::EvidenceKind::given_at, finding);
  if (arrival == nullptr || given == nullptr || arrival->how != trace::How::created) return std::nullopt;
  const bool of_script = arrival->at.function == "<module>" && given->at.function != "<module>";
  if (!of_script || !pair.odd.on_cpu() || !on_accelerator(pair.wanted)) return std::nullopt;
  if (!begins_with_entry(given->text) || given->text.starts_with("self") || !given->text.ends_with(']')) {
    return std::nullopt;
  }
  const std::string move = "`" + given->text + ".to('" + pair.wanted.device + "')`";
  return Explanation{cause_at(given->at, pair.odd,
                              "This call gives `" + given->text + "` as it is, from data that " +
                                  short_place(arrival->at) + " has on the CPU, and nothing moves it."),
                     Fix{given->at.file, given->at.line, "Move it where it is handed on: " + move + "."}};
}

// `self.buckets = state["buckets"]`, in a method that takes over what was saved: the loop that goes through the list
// later has nothing to add.
std::optional<Explanation> kept_as_given(const Pair& pair, const Finding& finding) {
  const Evidence* stored = place_of(pair.odd, trace::EvidenceKind::list_stored_at, finding);
  const auto assigned = stored != nullptr ? split_assignment(stored->at.statement()) : std::nullopt;
  if (!assigned || is_constructor(stored->at) || !only_takes_apart(stored->at.statement())) return std::nullopt;
  if (!begins_with_entry(assigned->value) || !pair.odd.on_cpu() || !was_never_moved(pair.odd)) return std::nullopt;
  return Explanation{
      cause_at(stored->at, pair.odd,
               "This line keeps what it is given as it is: " + mention(pair.odd) +
                   " is in it, on the CPU. What it meets is on " + spoken_device(pair.wanted.device) + "."),
      Fix{stored->at.file, stored->at.line,
          "Move each to " + spoken_device(pair.wanted.device) + " when it is taken over here."}};
}

}  // namespace

std::optional<Explanation> taken_from_elsewhere(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  if (auto entry = entry_handed_on(*pair, finding)) return entry;
  if (auto kept = kept_as_given(*pair, finding)) return kept;
  const Evidence* bound = place_of(pair->odd, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr || same_line(bound->at, *finding.where)) return std::nullopt;
  if (decided_elsewhere(pair->odd, finding) || made_by_user(pair->odd, finding)) return std::nullopt;
  const bool loop = is_loop(bound->at) && !made_by_helper_of_loop(pair->odd, bound->at);
  const bool taken_apart = only_takes_apart(bound->at.statement());
  const LineageStep* sibling = taken_apart ? sibling_moved(bound->at, *pair, finding) : nullptr;
  if (begins_here(pair->odd, finding) && sibling == nullptr && !(loop && taken_apart)) return std::nullopt;
  std::string why = "`" + bound->text + "` gets its value here, on " + spoken_device(pair->odd.device);
  why += sibling == nullptr ? ", and nothing moves it."
                            : ", and nothing moves it; " + short_place(sibling->at) + " moves what it meets.";
  const std::string device = device_at(bound->at, pair->wanted, finding);
  const std::string edit = assigned_after_move(bound->at, device);
  const std::string text = edit.empty() ? "Move it where it is taken out: `" + bound->text + ".to(" + device + ")`."
                                        : "Move it where it is taken out: `" + edit + "`.";
  return Explanation{cause_at(bound->at, pair->odd, std::move(why)), Fix{bound->at.file, bound->at.line, text}};
}

}  // namespace devsan::report::why
