// A function, mostly a constructor, is told a device and makes its tensors there, but for one, which it makes on a
// device that it names itself.
#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// What a factory is given as its device; empty where it is given none by name.
std::string device_given(const Frame& place) {
  const std::string text = call_at(place);
  const auto call = split_call(text);
  if (!call) return "";
  for (const ArgumentText& one : call->arguments) {
    if (one.keyword == "device") return std::string(one.text);
  }
  // `torch.from_numpy(x).to(device, torch.float32)`
  constexpr std::string_view kTo = ".to(";
  const std::string_view behind = behind_call(place);
  if (!behind.starts_with(kTo)) return "";
  const std::string_view rest = behind.substr(kTo.size());
  return std::string(rest.substr(0, rest.find_first_of(",)")));
}

// `torch.tensor()` makes it on the CPU, and takes it to a default device in the same line.
bool is_made_at(const LineageStep& arrival, const Operand& operand) {
  const LineageStep& origin = operand.lineage.back();
  return origin.how == trace::How::created && same_line(origin.at, arrival.at);
}

// Beside it, in the same function, a factory is told no device, and follows a default that somebody has set.
std::optional<Explanation> left_to_default(const LineageStep& beside, const LineageStep& made, const std::string& taken,
                                           const Pair& pair, const Finding& finding) {
  if (names_device(beside.at) || made_like_another(beside.at) || !on_accelerator(pair.wanted)) return std::nullopt;
  if (same_function(beside.at, *finding.where) && is_weight(pair.odd)) return std::nullopt;
  const std::string edit = with_argument(call_at(beside.at), "device=" + taken);
  return Explanation{
      cause_at(beside.at, pair.wanted,
               "`" + beside.at.function + "` works on `" + taken + "`, " + spoken_device(pair.odd.device) +
                   ", where it makes " + mention(pair.odd) + ", in " + short_place(made.at) + ". This line makes " +
                   mention(pair.wanted) + " without a device, so it is on the default device of that moment, " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{beside.at.file, beside.at.line,
          edit.empty() ? "Make it on `" + taken + "`, too." : "Make it there, too: `" + edit + "`."}};
}

}  // namespace

std::optional<Explanation> device_not_taken(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const auto decided = decision_of(pair->odd, trace::EvidenceKind::device_from, finding);
  const LineageStep* made = arrival_of(pair->odd);
  const LineageStep* beside = arrival_of(pair->wanted);
  if (!decided || !is_device_argument(*decided) || made == nullptr || beside == nullptr) return std::nullopt;
  // Nobody knows whether what is told is right where its beginning is not known; a literal beside it ignores it anyway.
  if (!is_final(*decided) && !names_device_itself(beside->at)) return std::nullopt;
  if (made->how != trace::How::created || !is_made_at(*beside, pair->wanted)) return std::nullopt;
  if (!same_function(made->at, beside->at) || !is_changeable(beside->at, finding)) return std::nullopt;
  const std::string taken = device_given(made->at);
  if (taken != decided->name && taken != "self." + decided->name) return std::nullopt;
  const std::string other = device_given(beside->at);
  if (other.empty()) return left_to_default(*beside, *made, taken, *pair, finding);
  if (other == decided->name) return std::nullopt;
  const std::string edit = with_argument(call_at(beside->at), "device=" + decided->name);
  return Explanation{
      cause_at(beside->at, pair->wanted,
               "`" + beside->at.function + "` is told to work on `" + decided->name + "`, " +
                   spoken_device(pair->odd.device) + ", and makes " + mention(pair->odd) + " there, in " +
                   short_place(made->at) + ". This line makes " + mention(pair->wanted) + " on `" + other +
                   "`, which is " + spoken_device(pair->wanted.device) + "."),
      Fix{beside->at.file, beside->at.line,
          edit.empty() ? "Make it on `" + decided->name + "`, too." : "Make it there, too: `" + edit + "`."}};
}

}  // namespace devsan::report::why
