// A cache is looked up by size, and its entries are made on the device that is asked for. The first caller's device so
// decides for all later ones: the line to change is the one that makes the key.
#include <algorithm>
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Whether the value was made for the device of that moment, so that another moment would have made it elsewhere.
bool follows_device(const LineageStep& arrival) {
  if (names_device_itself(arrival.at)) return false;
  if (arrival.how == trace::How::moved) return true;
  return arrival.how == trace::How::created && (names_device(arrival.at) || made_like_another(arrival.at));
}

// A function that led to it does not run any more: another call than this one.
bool was_called_otherwise(const LineageStep& arrival, const Finding& finding) {
  const auto has_ended = [&](const Frame& call) { return !is_running(call, finding); };
  return std::ranges::any_of(arrival.calls, has_ended);
}

// Whether this call asks for the device where the value is missed: an entry made by this call would have been right.
// With two accelerators each call asks for its own, or nobody would have needed the second.
bool asks_for_wanted_device(const Pair& pair, const LineageStep& arrival, const Finding& finding) {
  if (on_accelerator(pair.odd) && on_accelerator(pair.wanted)) return true;
  const auto names_wanted = [&](const Frame& place) {
    return same_function(place, *finding.where) && std::ranges::any_of(finding.operands, [&](const Operand& operand) {
             const bool wanted = !operand.odd && operand.device == pair.wanted.device && !operand.name.empty();
             return wanted && place.source.find(operand.name + ".device") != std::string::npos;
           });
  };
  const auto is_given = [&](const Evidence& evidence) {
    if (evidence.kind != trace::EvidenceKind::device_from) return false;
    // `table(n, x.device)`: by a value that is no operand, after somebody else had asked before.
    return names_wanted(evidence.at) || (is_device_of_value(evidence.at) && was_called_otherwise(arrival, finding));
  };
  return names_wanted(arrival.at) || std::ranges::any_of(pair.odd.evidence, is_given);
}

// "device" of `torch.arange(n, device=device)`, where that can be written into the line of the key.
std::string device_in_scope(const Frame& key, const LineageStep& arrival) {
  constexpr std::string_view kBefore = "device=";
  const std::size_t at = arrival.at.source.find(kBefore);
  if (at == std::string::npos || !same_function(key, arrival.at)) return "";
  const std::string_view rest = std::string_view(arrival.at.source).substr(at + kBefore.size());
  const std::string_view name = rest.substr(0, rest.find_first_of(",)"));
  return is_postfix_expression(name) && name.find('(') == name.npos ? std::string(name) : std::string();
}

// "key = (height, width)" -> "key = (height, width, device)". Empty for other lines.
std::string with_device(const Frame& key, const std::string& device) {
  const auto assignment = split_assignment(key.source);
  if (device.empty() || !assignment || assignment->target.find('[') != std::string_view::npos) return "";
  std::string_view value = assignment->value;
  const bool tuple = value.starts_with('(') && value.ends_with(')') && value.find(',') != value.npos;
  if (tuple) value = value.substr(1, value.size() - 2);
  if (!tuple && !is_postfix_expression(value)) return "";
  const std::string comma = value.ends_with(',') ? " " : ", ";
  return std::string(assignment->target) + " = (" + std::string(value) + comma + device + ")";
}

}  // namespace

std::optional<Explanation> keyed_without_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* key = place_of(pair->odd, trace::EvidenceKind::cache_key_at, finding);
  const LineageStep* arrival = arrival_of(pair->odd);
  if (key == nullptr || arrival == nullptr || is_constructor(key->at) || !follows_device(*arrival)) return std::nullopt;
  if (!asks_for_wanted_device(*pair, *arrival, finding)) return std::nullopt;
  const std::string edit = with_device(key->at, device_in_scope(key->at, *arrival));
  std::string why = mention_first(pair->odd) + " comes from `" + key->text +
                    "`, where an earlier call put it, made on " + spoken_device(pair->odd.device) + " in " +
                    short_place(arrival->at) +
                    ". The key that this line makes says nothing of the device, so a call for " +
                    spoken_device(pair->wanted.device) + " finds the same entry.";
  const std::string move = move_call(pair->odd, pair->wanted);
  return Explanation{cause_at(key->at, pair->odd, std::move(why)),
                     Fix{key->at.file, key->at.line,
                         "Make the device a part of the key" + (edit.empty() ? "" : ": `" + edit + "`") +
                             "; or move it where it is used, in " + short_place(*finding.where) +
                             (move.starts_with('.') ? "." : ": `" + move + "`.")}};
}

}  // namespace devsan::report::why
