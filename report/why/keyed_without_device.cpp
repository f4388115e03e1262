// A cache is looked up by size, and its entries are made on the device that is asked for. The first caller's device so
// decides for all later ones: the line to change is the one that makes the key. A key with the type of the device alone
// does the same for all GPUs.
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

// `cache[key] = table(n).to(x)` of an earlier call, whose x was where the table was made: the move did nothing then,
// and follows the device all the same. Null without one.
const Frame* left_where_put(const Operand& odd, const Finding& finding) {
  const Evidence* stay = place_of(odd, trace::EvidenceKind::stayed_at, finding);
  const Evidence* put = place_of(odd, trace::EvidenceKind::entry_put_at, finding);
  const bool same = stay != nullptr && put != nullptr && same_line(stay->at, put->at);
  return same && !names_device_itself(stay->at) ? &stay->at : nullptr;
}

// A function that led to it does not run any more; or the innermost of them that does was called from elsewhere then:
// another call than this one.
bool was_called_otherwise(const LineageStep& arrival, const Finding& finding) {
  const auto has_ended = [&](const Frame& call) { return !is_running(call, finding); };
  if (std::ranges::any_of(arrival.calls, has_ended)) return true;
  const auto runs = [&](const Frame& call) { return is_running(call, finding); };
  const auto waits_there = [&](const Frame& call) {
    return std::ranges::any_of(finding.stack, [&](const Frame& now) { return same_line(now, call); });
  };
  const auto running = std::ranges::find_if(arrival.calls, runs);
  return running != arrival.calls.end() && !std::all_of(running + 1, arrival.calls.end(), waits_there);
}

// `torch.arange(n, device=like.device)`, where the function was given `like`.
bool takes_device_of(const Frame& made, const std::string& argument) {
  return !argument.empty() && made.statement().find("device=" + argument + ".device") != std::string::npos;
}

// Whether this call asks for the device where the value is missed: an entry made by this call would have been right.
// With two accelerators each call asks for its own, or nobody would have needed the second.
bool asks_for_wanted_device(const Pair& pair, const LineageStep& arrival, const Frame& made, const Finding& finding) {
  if (on_accelerator(pair.odd) && on_accelerator(pair.wanted)) return true;
  const auto names_wanted = [&](const Frame& place) {
    return same_function(place, *finding.where) && std::ranges::any_of(finding.operands, [&](const Operand& operand) {
             const bool wanted = !operand.odd && operand.device == pair.wanted.device && !operand.name.empty();
             return wanted && (place.statement().find(operand.name + ".device") != std::string::npos ||
                               place.statement().find(".to(" + operand.name + ")") != std::string::npos);
           });
  };
  const auto is_given = [&](const Evidence& evidence) {
    if (evidence.kind != trace::EvidenceKind::device_from) return false;
    // `table(n, x.device)`, `table(n, like=x)`: by a value that is no operand, after somebody else had asked before.
    const bool by_value = is_device_of_value(evidence.at) || takes_device_of(arrival.at, evidence.text);
    return names_wanted(evidence.at) || (by_value && was_called_otherwise(arrival, finding));
  };
  // `x.new_ones(n)`, where another `x` asks now.
  if (made_like_another(made) && was_called_otherwise(arrival, finding)) return true;
  return names_wanted(made) || std::ranges::any_of(pair.odd.evidence, is_given);
}

// "device" of `torch.arange(n, device=device)`, where that can be written into the line of the key.
std::string device_in_scope(const Frame& key, const LineageStep& arrival) {
  constexpr std::string_view kBefore = "device=";
  const std::size_t at = arrival.at.statement().find(kBefore);
  if (at == std::string::npos || !same_function(key, arrival.at)) return "";
  const std::string_view rest = std::string_view(arrival.at.statement()).substr(at + kBefore.size());
  const std::string_view name = rest.substr(0, rest.find_first_of(",)"));
  return is_postfix_expression(name) && name.find('(') == name.npos ? std::string(name) : std::string();
}

// "key = (height, width)" -> "key = (height, width, device)". Empty for other lines.
std::string with_device(const Frame& key, const std::string& device) {
  const auto assignment = split_assignment(key.statement());
  if (device.empty() || !assignment || assignment->target.find('[') != std::string_view::npos) return "";
  std::string_view value = assignment->value;
  const bool tuple = value.starts_with('(') && value.ends_with(')') && value.find(',') != value.npos;
  if (tuple) value = value.substr(1, value.size() - 2);
  if (!tuple && !is_postfix_expression(value)) return "";
  const std::string comma = value.ends_with(',') ? " " : ", ";
  return std::string(assignment->target) + " = (" + std::string(value) + comma + device + ")";
}

// "cuda" of "cuda:1"
std::string_view type_of_device(std::string_view device) {
  return device.substr(0, device.find(':'));
}

// "key = (size, x.device.type)" -> "key = (size, x.device)". Empty for other lines.
std::string with_index(const Frame& key) {
  constexpr std::string_view kDevice = "device";
  constexpr std::string_view kType = "device.type";
  std::string statement(statement_of(key.statement()));
  const std::size_t at = statement.find(kType);
  if (at == std::string::npos || statement.find(kType, at + 1) != std::string::npos) return "";
  return statement.replace(at, kType.size(), kDevice);
}

// The line that makes the key, and what to make of it.
struct Key {
  const Evidence* made;
  bool has_type;  // of the device, and not its index
};
std::optional<Key> key_of(const Pair& pair, const Finding& finding) {
  if (const Evidence* made = place_of(pair.odd, trace::EvidenceKind::cache_key_at, finding)) return Key{made, false};
  const Evidence* made = place_of(pair.odd, trace::EvidenceKind::cache_key_type_at, finding);
  const bool same_type = type_of_device(pair.odd.device) == type_of_device(pair.wanted.device);
  return made != nullptr && same_type ? std::optional(Key{made, true}) : std::nullopt;
}

}  // namespace

std::optional<Explanation> keyed_without_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const auto key = key_of(*pair, finding);
  const LineageStep* arrival = arrival_of(pair->odd);
  if (!key || arrival == nullptr || is_constructor(key->made->at)) return std::nullopt;
  const Frame* left = left_where_put(pair->odd, finding);
  const Frame& made = left != nullptr ? *left : arrival->at;
  if (left == nullptr && !follows_device(*arrival)) return std::nullopt;
  if (!asks_for_wanted_device(*pair, *arrival, made, finding)) return std::nullopt;
  const Frame& at = key->made->at;
  const std::string edit = key->has_type ? with_index(at) : with_device(at, device_in_scope(at, *arrival));
  std::string why = mention_first(pair->odd) + " comes from `" + key->made->text +
                    "`, where an earlier call put it, made on " + spoken_device(pair->odd.device) + " in " +
                    short_place(made) + ". The key that this line makes says " +
                    (key->has_type ? "which type of device it is for, and not which one" : "nothing of the device") +
                    ", so a call for " + spoken_device(pair->wanted.device) + " finds the same entry.";
  const std::string move = move_call(pair->odd, pair->wanted);
  return Explanation{
      cause_at(at, pair->odd, std::move(why)),
      Fix{at.file, at.line,
          std::string(key->has_type ? "Make the device with its index" : "Make the device") + " a part of the key" +
              (edit.empty() ? "" : ": `" + edit + "`") + "; or move it where it is used, in " +
              short_place(*finding.where) + (move.starts_with('.') ? "." : ": `" + move + "`.")}};
}

}  // namespace devsan::report::why
