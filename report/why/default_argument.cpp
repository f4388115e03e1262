// The default value of an argument is made once, when `def` runs, on the device of that moment.
#include <string>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// `def steer(out, vector=vector)`: the default keeps what a variable had, which was made before.
bool was_made_before(const Operand& operand, const Frame& definition) {
  const LineageStep* arrival = arrival_of(operand);
  if (arrival == nullptr || is_weight(operand)) return false;
  return arrival->at.file != definition.file || arrival->at.line < definition.line;
}

// The line of a definition over several lines that this default stands in.
const Frame& line_of_default(const Operand& operand, const Evidence& def) {
  const LineageStep* arrival = arrival_of(operand);
  const std::size_t open = def.text.find('(');
  if (arrival == nullptr || open == def.text.npos) return def.at;
  const std::string argument = def.text.substr(open + 1, def.text.size() - open - 2);
  const std::string_view line = arrival->at.statement();
  const std::size_t name = find_name(line, argument);
  const std::string_view behind = name != line.npos ? line.substr(name + argument.size()) : std::string_view();
  const bool names_it = behind.starts_with('=') || behind.starts_with(':');
  const bool below = arrival->at.file == def.at.file && arrival->at.line > def.at.line;
  return below && names_it && !same_function(arrival->at, def.at) ? arrival->at : def.at;
}

// A module as the default: who moves it for one caller moves it under all others.
std::optional<Explanation> moved_for_all(const Finding& finding) {
  for (const Operand& operand : finding.operands) {
    const Evidence* def = place_of(operand, trace::EvidenceKind::default_argument, finding);
    const LineageStep* move = newest_move_of(operand);
    if (operand.odd || def == nullptr || move == nullptr || !is_weight(operand)) continue;
    RootCause cause = cause_at(def->at, operand,
                               mention_first(operand) + " belongs to the default of `" + def->text +
                                   "`, which is made once and shared by all calls. " + short_place(move->at) +
                                   " has moved it to " + spoken_device(operand.device) + " for one of them.");
    return Explanation{std::move(cause),
                       Fix{def->at.file, def->at.line, "Let the default be `None`, and make a module in each call."}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Explanation> default_argument(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* def = place_of(pair->odd, trace::EvidenceKind::default_argument, finding);
  if (def != nullptr && !was_made_before(pair->odd, def->at)) {
    const Frame& place = line_of_default(pair->odd, *def);
    RootCause cause = cause_at(place, pair->odd,
                               mention_first(pair->odd) + (is_weight(pair->odd) ? " belongs to" : " is") +
                                   " the default of `" + def->text + "`, which is made once, when the function is " +
                                   "defined, and is on " + spoken_device(pair->odd.device) + ".");
    return Explanation{std::move(cause),
                       Fix{place.file, place.line,
                           "Let the default be `None`, and make it in the function, on " + pair->wanted.device + "."}};
  }
  return moved_for_all(finding);
}

}  // namespace devsan::report::why
