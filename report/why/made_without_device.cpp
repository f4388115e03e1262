// Factories make their tensors on the default device, the CPU unless told otherwise. One that is told which device to
// use did what it was told: then it counts who told it, if that is known, and nobody is blamed where it is not.
#include <algorithm>
#include <string_view>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

std::string on_which(const Operand& odd) {
  return odd.on_cpu() ? ", on the CPU because no device is given"
                      : ", on " + odd.device + ", the default device of that moment, because none is given";
}

Explanation told_from(const Decision& decided, const Pair& pair, const LineageStep& origin, const Finding& finding) {
  RootCause cause = cause_at(decided.at, pair.odd,
                             mention_first(pair.odd) + " begins in " + short_place(origin.at) + ", and is on " +
                                 spoken_device(pair.odd.device) + " " + because_of(decided) + ".");
  return {std::move(cause),
          Fix{decided.at.file, decided.at.line,
              change_of(decided, pair, finding) + "; or make it on " + spoken_device(pair.wanted.device) + " in " +
                  short_place(origin.at) + ", whatever is given."}};
}

// A constructor makes what it keeps for all that will use it. Where these are on several accelerators, no device that
// it is given is right for all of them.
bool is_one_for_all(const LineageStep& origin, const Decision& decided, const Pair& pair) {
  return on_accelerator(pair.odd) && on_accelerator(pair.wanted) && is_constructor(origin.at) &&
         origin.at.function != "<module>" && !decided.name.starts_with("self.") && is_device_of_value(decided.at);
}

Explanation one_for_all(const Decision& decided, const LineageStep& origin, const Pair& pair) {
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line, on `" + decided.name + "`, which is " +
                       pair.odd.device + ", the device of another value in " + short_place(decided.at) +
                       ". What uses it is not all there: what it meets is on " + pair.wanted.device + "."),
          Fix{origin.at.file, origin.at.line,
              "Make each on the device of what uses it, here " + pair.wanted.device +
                  ", instead of one device for all; or move it where it is used."}};
}

// An attribute that says a device does not move with a model; what is made on it later meets weights that did.
const Evidence* left_attribute(const LineageStep& origin, const Pair& pair, const Finding& finding) {
  const Evidence* attribute = attribute_between(pair.odd, trace::EvidenceKind::device_from, finding);
  const bool used_later = attribute != nullptr && is_constructor(attribute->at) && !is_constructor(origin.at);
  return used_later && is_weight(pair.wanted) && newest_move_of(pair.wanted) != nullptr ? attribute : nullptr;
}

Explanation made_on_attribute(const Evidence& attribute, const LineageStep& origin, const Pair& pair) {
  const LineageStep& move = *newest_move_of(pair.wanted);
  return {cause_at(attribute.at, pair.odd,
                   mention_first(pair.odd) + " begins in " + short_place(origin.at) + " on `" + attribute.text +
                       "`, which this line stores: " + spoken_device(pair.odd.device) + ". " +
                       mention_first(pair.wanted) + " was moved to " + spoken_device(pair.wanted.device) + " in " +
                       short_place(move.at) + ", which the attribute does not follow."),
          Fix{origin.at.file, origin.at.line,
              "Take the device from the weights that it meets instead of `" + attribute.text +
                  "`, or store that anew where these are moved."}};
}

// `device=self.device`, which is computed whenever it is asked: the line asks for it.
Explanation made_as_asked(const Evidence& property, const LineageStep& origin, const Pair& pair,
                          const std::string& device) {
  return {
      cause_at(origin.at, pair.odd,
               mention_first(pair.odd) + " begins in this line on `" + property.text + "`, which is " +
                   spoken_device(pair.odd.device) + " at that moment, as the property in " + short_place(property.at) +
                   " computes it. What it meets is on " + spoken_device(pair.wanted.device) + "."),
      Fix{origin.at.file, origin.at.line,
          "Take the device from what it meets, `" + device + "`, instead of `" + property.text + "`."}};
}

// A generator makes numbers on its own device alone: a factory that is given one cannot be told another device.
bool is_drawn(const Frame& place) {
  return call_at(place).find("generator=") != std::string::npos;
}

Explanation drawn_elsewhere(const LineageStep& origin, const Pair& pair, const std::string& device) {
  const std::string call = call_at(origin.at);
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line, on " + spoken_device(pair.odd.device) +
                       ", where the generator is that it is drawn from."),
          Fix{origin.at.file, origin.at.line,
              "Move what is drawn: `" + call + ".to(" + device + ")`; or make the generator on " +
                  spoken_device(pair.wanted.device) + ". Numbers of another generator are other ones."}};
}

// "to(self.device)", behind the call that made it in the same line. It left the value where it was: a move that does
// something is a step of the history.
std::string move_behind(const Frame& place) {
  if (place.end_line != place.line || place.end_column < 0) return "";
  const std::string_view rest =
      std::string_view(place.source).substr(std::min(place.source.size(), static_cast<std::size_t>(place.end_column)));
  const std::size_t begin = rest.find(".to(");
  const std::size_t end = begin == rest.npos ? rest.npos : rest.find(')', begin);
  const std::string_view call = end == rest.npos ? std::string_view() : rest.substr(begin + 1, end - begin);
  return call.find("device") == call.npos ? "" : std::string(call);
}

Explanation left_by_move(const LineageStep& origin, const std::string& move, const Pair& pair) {
  const std::string here = spoken_device(pair.odd.device);
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line on " + here + ", and `" + move +
                       "` leaves it there: what that names is on " + here + ", too, at that moment."),
          Fix{origin.at.file, origin.at.line, "Name " + spoken_device(pair.wanted.device) + " in `" + move + "`."}};
}

}  // namespace

std::optional<Explanation> made_without_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || newest_move_of(pair->odd) != nullptr) return std::nullopt;
  const LineageStep* origin = arrival_of(pair->odd);
  if (origin == nullptr || origin->how != trace::How::created || !is_changeable(origin->at, finding)) {
    return std::nullopt;
  }
  if (const std::string move = move_behind(origin->at); !move.empty()) return left_by_move(*origin, move, *pair);
  const bool named = names_device(origin->at);
  const std::string device = device_at(origin->at, pair->wanted, finding);
  if (is_drawn(origin->at)) return drawn_elsewhere(*origin, *pair, device);
  const std::string edit = named ? "" : with_argument(call_at(origin->at), "device=" + device);
  std::string text = named          ? "Make it on " + spoken_device(pair->wanted.device)
                     : edit.empty() ? "Pass `device=" + device + "`"
                                    : "Pass the device: `" + edit + "`";
  if (!made_in_failing_call(*origin, finding)) {
    text += ", or move it where it is used, in " + short_place(*finding.where) + ": `" +
            move_call(pair->odd, pair->wanted) + "`";
  }
  Fix fix{origin->at.file, origin->at.line, text + "."};
  const auto decided = decision_of(pair->odd, trace::EvidenceKind::device_from, finding);
  const Evidence* attribute = left_attribute(*origin, *pair, finding);
  if (attribute != nullptr && !(decided && is_entry(*decided))) return made_on_attribute(*attribute, *origin, *pair);
  if (decided && is_one_for_all(*origin, *decided, *pair)) return one_for_all(*decided, *origin, *pair);
  if (decided) return told_from(*decided, *pair, *origin, finding);
  const Evidence* property = place_of(pair->odd, trace::EvidenceKind::device_property_at, finding);
  if (named && property != nullptr) return made_as_asked(*property, *origin, *pair, device);
  if (named && !names_device_itself(origin->at)) return Explanation{std::nullopt, std::move(fix)};
  RootCause cause = cause_at(origin->at, pair->odd,
                             mention_first(pair->odd) + " begins in this line" +
                                 (named ? ", on " + spoken_device(pair->odd.device) : on_which(pair->odd)) + ".");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why
