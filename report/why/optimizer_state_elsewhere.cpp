// An optimizer's state belongs on the device of its parameter. `load_state_dict` sees to it; code that writes into
// `optimizer.state` itself has to do so, too.
#include <algorithm>

#include "report/frames.h"
#include "report/operands.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `self.optimizers = [model.configure()]`, above `model.cuda()`: the function that makes the optimizer does as it is
// called.
Explanation made_by_early_call(const Evidence& call, const LineageStep& made, const std::string& what,
                               const Pair& pair) {
  return {cause_at(call.at, pair.odd,
                   "This line calls `" + call.text + "`, which makes the optimizer in " + short_place(made.at) +
                       ", and " + what + " with it, like its parameter, on " + spoken_device(pair.odd.device) +
                       ". The parameters are moved to " + spoken_device(pair.wanted.device) +
                       " further down, and moving them moves no state of optimizers."),
          Fix{call.at.file, call.at.line, "Move the parameters before this line."}};
}

// Some optimizers make their state as soon as they are made, like the parameters that they are given.
Explanation made_before_the_move(const LineageStep& made, const std::string& what, const Pair& pair,
                                 const Finding& finding) {
  if (const Evidence* call = called_before_move(pair.odd, finding)) return made_by_early_call(*call, made, what, pair);
  // `Trainer(lambda p: Adagrad(p), ...)`: who calls the function that makes the optimizer settles when that is.
  const Evidence* kept = place_of(pair.odd, trace::EvidenceKind::attribute_set_at, finding);
  const bool by_lambda = made.at.function.ends_with("<lambda>") && kept != nullptr;
  const Frame& place = by_lambda ? kept->at : made.at;
  RootCause cause =
      cause_at(place, pair.odd,
               what + " is made in this line like its parameter, which is on " + spoken_device(pair.odd.device) +
                   " then. The parameter is on " + spoken_device(pair.wanted.device) +
                   " by now, and moving it moves no "
                   "state of optimizers.");
  return {std::move(cause),
          Fix{place.file, place.line,
              "Make the optimizer when its parameters are on " + spoken_device(pair.wanted.device) + " already."}};
}

// State is made like its parameter, so it has the parameter's history: sent to the host, and brought back. Where the
// state was sent there, too, and is there still, the line that brings the parameters back has left it.
std::optional<Explanation> brought_back_without(const Pair& pair, const LineageStep* sent, const std::string& what,
                                                const Finding& finding) {
  if (sent == nullptr || sent->how != trace::How::moved || !pair.odd.on_cpu()) return std::nullopt;
  for (const LineageStep* step = sent + 1; step + 1 < pair.odd.lineage.data() + pair.odd.lineage.size(); ++step) {
    const bool back = step->how == trace::How::moved && step->device == pair.wanted.device &&
                      (step + 1)->how == trace::How::moved && (step + 1)->device == "cpu";
    if (!back || !is_changeable(step->at, finding)) continue;
    return Explanation{
        cause_at(step->at, pair.odd,
                 "This line brings the parameters back to " + spoken_device(pair.wanted.device) + ". " + what +
                     ", which " + short_place(sent->at) + " sent to the CPU, does not come with them."),
        Fix{step->at.file, step->at.line, "Bring the optimizer's state back here, too, whenever it was sent away."}};
  }
  return std::nullopt;
}

// `self.move_state("cpu")`, and `self.move_state(device)` in another method: the object has a line that brings the
// state back, and it was not come to.
std::optional<Explanation> not_brought_back(const Pair& pair, const LineageStep* sent, const std::string& what,
                                            const Finding& finding) {
  const Evidence* back = place_of(pair.odd, trace::EvidenceKind::brought_back_at, finding);
  if (back == nullptr || sent == nullptr || sent->how != trace::How::moved || !pair.odd.on_cpu()) return std::nullopt;
  const Evidence* condition = place_of(pair.odd, trace::EvidenceKind::brought_back_if_at, finding);
  const Frame& place = condition != nullptr ? condition->at : back->at;
  return Explanation{
      cause_at(place, pair.odd,
               what + " was sent to the CPU, in " + short_place(sent->at) + ". " + short_place(back->at) + " calls `" +
                   back->text + "` to bring it back" +
                   (condition != nullptr ? ", under this condition, which kept it from that." : "; it is still away.")),
      Fix{place.file, place.line,
          "Bring the state back to " + pair.wanted.device + " whenever it was sent away, before the next step."}};
}

// Other state of the same parameter was brought to it, by a line that left this one. What else the owner of the
// optimizer keeps, as an attribute, is no state.
std::optional<Explanation> left_beside_others(const Pair& pair, const std::string& what, const Finding& finding) {
  const Evidence* sibling = place_of(pair.odd, trace::EvidenceKind::sibling_moved, finding);
  if (sibling == nullptr || sibling->text.starts_with('.') || !pair.odd.on_cpu()) return std::nullopt;
  const Evidence* listed = place_of(pair.odd, trace::EvidenceKind::names_listed_at, finding);
  const Evidence* branch = place_of(pair.odd, trace::EvidenceKind::put_as_it_is_at, finding);
  const Evidence& place = listed != nullptr ? *listed : branch != nullptr ? *branch : *sibling;
  const std::string others = short_place(sibling->at) + " brings `" + sibling->text + "` to " +
                             spoken_device(pair.wanted.device) + ", and leaves " + what + " on the CPU.";
  return Explanation{
      cause_at(place.at, pair.odd,
               listed != nullptr ? "The names of what is brought back are written here. " + others : others),
      Fix{place.at.file, place.at.line, "Bring all state of the parameter back, " + what + " too."}};
}

// `self.epoch = load_checkpoint(self.model, self.optimizer, file)`, and under it `self.model.to(device)`: the helper
// does what it is called for, and its caller does the two in the wrong order.
std::optional<Explanation> restored_before_the_move(const Pair& pair, const LineageStep* arrival,
                                                    const std::string& what, const Finding& finding) {
  const LineageStep* moved = newest_move_of(pair.wanted);
  if (arrival == nullptr || moved == nullptr || !moves_module(*moved) || !pair.odd.on_cpu()) return std::nullopt;
  if (arrival->at.statement().find("load_state_dict(") == std::string::npos) return std::nullopt;
  const auto before = std::ranges::find_if(arrival->calls, [&](const Frame& call) {
    return same_function(call, moved->at) && call.line < moved->at.line && is_changeable(call, finding);
  });
  if (before == arrival->calls.end()) return std::nullopt;
  const std::string there = spoken_device(pair.wanted.device);
  return Explanation{
      cause_at(*before, pair.odd,
               "This line has the optimizer's state restored, in " + short_place(arrival->at) + ", which brings " +
                   what + " to its parameter, on the CPU. " + short_place(moved->at) + " moves the parameters to " +
                   there + " only then, and moving them moves no state of optimizers."),
      Fix{before->file, before->line,
          "Restore it when the parameters are on " + there + ": behind " + short_place(moved->at) + "."}};
}

// `load_state_dict()` brings the state to its parameter, which was moved only later.
std::optional<Explanation> loaded_before_the_move(const Pair& pair, const std::string& what, const Finding& finding) {
  const Evidence* stayed = place_of(pair.odd, trace::EvidenceKind::stayed_at, finding);
  if (stayed == nullptr || !pair.odd.on_cpu() || stayed->at.statement().find("load_state_dict(") == std::string::npos) {
    return std::nullopt;
  }
  const std::string there = spoken_device(pair.wanted.device);
  return Explanation{
      cause_at(stayed->at, pair.odd,
               "This line brings " + what + " to its parameter, which is on the CPU then. The parameter is on " +
                   there + " by now, and moving it moves no state of optimizers."),
      Fix{stayed->at.file, stayed->at.line, "Load the optimizer's state when its parameters are on " + there + "."}};
}

// An earlier step of the optimizer has made its state, and the parameters were moved since: a check on the CPU before
// the training, a resumed run that trains on and then moves.
std::optional<Explanation> moved_between_steps(const Pair& pair, const LineageStep* made, const std::string& what,
                                               const Finding& finding) {
  const Evidence* moved = place_of(pair.odd, trace::EvidenceKind::source_moved_at, finding);
  const bool by_step =
      made != nullptr && (made_in_failing_call(*made, finding) || made->at.function.ends_with(".step"));
  if (moved == nullptr || !by_step) return std::nullopt;
  const std::string there = spoken_device(pair.wanted.device);
  return Explanation{
      cause_at(moved->at, pair.odd,
               "The parameters are moved to " + there + " here. " + what +
                   " was made by an earlier step of the optimizer, on " + spoken_device(pair.odd.device) +
                   ", and moving parameters moves no state of optimizers."),
      Fix{moved->at.file, moved->at.line,
          "Move them before the first step, or make the optimizer after this line; or move its state here, too."}};
}

// `state[key] = to_host(value)`: a helper brings over what the line that calls it puts into a dictionary.
const Frame& put_by(const LineageStep& arrival, const Finding& finding) {
  if (stores_entry(arrival.at.statement())) return arrival.at;
  const auto puts = [&](const Frame& call) { return stores_entry(call.statement()) && is_changeable(call, finding); };
  const auto found = std::ranges::find_if(arrival.calls, puts);
  return found != arrival.calls.end() ? *found : arrival.at;
}

// State is what should follow its parameter, whatever else an operator of the optimizer meets: a gradient is where the
// parameter is. Not where the failing step has made the state, like the parameter.
std::optional<Pair> state_among(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return pair;
  const bool other = evidence_of(pair->odd, trace::EvidenceKind::optimizer_state) == nullptr &&
                     evidence_of(pair->wanted, trace::EvidenceKind::optimizer_state) != nullptr;
  const std::vector<LineageStep>& steps = pair->wanted.lineage;
  const bool fresh = !steps.empty() && made_in_failing_call(steps.front(), finding);
  if (!other || fresh) return *pair;
  return pair->odd.name.ends_with(".grad") ? Pair{pair->wanted, pair->odd} : *pair;
}

}  // namespace

std::optional<Explanation> optimizer_state_elsewhere(const Finding& finding) {
  const auto pair = state_among(finding);
  if (!pair) return std::nullopt;
  const Evidence* state = evidence_of(pair->odd, trace::EvidenceKind::optimizer_state);
  if (state == nullptr) return std::nullopt;
  const std::string what = "`" + (state->text.empty() ? spoken_name(pair->odd) : state->text) + "`";
  const LineageStep* made = pair->odd.lineage.empty() ? nullptr : &pair->odd.lineage.front();
  const bool put = is_changeable(state->at, finding);
  if (auto between = put ? std::nullopt : moved_between_steps(*pair, made, what, finding)) return between;
  const bool alone = evidence_of(pair->odd, trace::EvidenceKind::sibling_moved) == nullptr;
  if (auto early = put || !alone ? std::nullopt : loaded_before_the_move(*pair, what, finding)) return early;
  if (!put && made != nullptr && made->how == trace::How::derived && is_changeable(made->at, finding) &&
      !made_in_failing_call(*made, finding)) {
    return made_before_the_move(*made, what, *pair, finding);
  }
  const LineageStep* arrival = arrival_of(pair->odd);
  if (auto back = brought_back_without(*pair, arrival, what, finding)) return back;
  if (auto away = not_brought_back(*pair, arrival, what, finding)) return away;
  if (auto left = left_beside_others(*pair, what, finding)) return left;
  if (auto order = restored_before_the_move(*pair, arrival, what, finding)) return order;
  if (auto early = loaded_before_the_move(*pair, what, finding)) return early;
  const Frame* place = nullptr;
  if (put) {
    place = &state->at;
  } else if (arrival != nullptr && is_changeable(arrival->at, finding)) {
    place = &put_by(*arrival, finding);
  }
  const Frame& line = place != nullptr ? *place : *finding.where;
  Fix fix{line.file, line.line,
          "Move " + what +
              " to its parameter's device when it is put there (`value.to(parameter.device)`), or restore "
              "it with `optimizer.load_state_dict()`, which does that."};
  if (place == nullptr) return Explanation{std::nullopt, std::move(fix)};
  RootCause cause = cause_at(*place, pair->odd,
                             what + " is put into the optimizer's state on " + spoken_device(pair->odd.device) +
                                 "; its parameter is on " + pair->wanted.device + ".");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why
