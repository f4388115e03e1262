// A function is told two devices, as one to compute on and one to keep results on, and took the other one for this
// value. Its caller, who gave both, has made no mistake.
#include <algorithm>
#include <array>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `result_device=...`, or a device that is written out: `out="cpu"`, `out=torch.device("cpu")`.
bool says_device(const ArgumentText& argument) {
  constexpr std::array<std::string_view, 5> kWritten = {"torch.device(", "\"cuda", "'cuda", "\"cpu", "'cpu"};
  const auto begins = [&](std::string_view written) { return argument.text.starts_with(written); };
  return argument.keyword.find("device") != argument.keyword.npos || std::ranges::any_of(kWritten, begins);
}

// "cpu" of `"cpu"` and of `torch.device('cpu')`; other expressions as they are.
std::string_view device_written(std::string_view text) {
  constexpr std::string_view kMake = "torch.device(";
  if (text.starts_with(kMake) && text.ends_with(')')) text = text.substr(kMake.size(), text.size() - kMake.size() - 1);
  const bool quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Another argument of the call that says a device; null without one.
const ArgumentText* other_device(const CallText& call, const Decision& decided) {
  const auto is_it = [&](const ArgumentText& one) { return one.keyword == decided.name; };
  const auto mine = std::ranges::find_if(call.arguments, is_it);
  if (mine == call.arguments.end()) return nullptr;
  const auto found = std::ranges::find_if(call.arguments, [&](const ArgumentText& one) {
    return !one.keyword.empty() && &one != &*mine && says_device(one) &&
           device_written(one.text) != device_written(mine->text);
  });
  return found != call.arguments.end() ? &*found : nullptr;
}

// Where the function asked for the device that it was told: a move that left the value there, or what made it.
const Frame* asked_at(const Pair& pair, trace::EvidenceKind kind, const Finding& finding) {
  if (kind == trace::EvidenceKind::stay_from) {
    const Evidence* stay = place_of(pair.odd, trace::EvidenceKind::stayed_at, finding);
    return stay != nullptr ? &stay->at : nullptr;
  }
  const LineageStep* arrival = arrival_of(pair.odd);
  return arrival != nullptr && is_changeable(arrival->at, finding) ? &arrival->at : nullptr;
}

// Another argument of the failing function, which says the device where the value is missed.
const Evidence* told_beside(const Pair& pair, const Frame& asked, const Finding& finding) {
  const Evidence* beside = place_of(pair.odd, trace::EvidenceKind::told_beside_at, finding);
  return beside != nullptr && asked.statement().find(beside->text) == std::string::npos ? beside : nullptr;
}

}  // namespace

std::optional<Explanation> told_two_devices(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  for (const auto kind : {trace::EvidenceKind::stay_from, trace::EvidenceKind::device_from}) {
    const auto decided = decision_of(pair->odd, kind, finding);
    const Frame* asked = decided ? asked_at(*pair, kind, finding) : nullptr;
    if (asked == nullptr || !same_function(*asked, *finding.where)) continue;
    const std::string text = call_at(decided->at);
    const auto call = split_call(text);
    const ArgumentText* other = call ? other_device(*call, *decided) : nullptr;
    const Evidence* beside = told_beside(*pair, *asked, finding);
    if (other == nullptr && beside == nullptr) continue;
    const std::string name = beside != nullptr ? beside->text : std::string(other->keyword);
    return Explanation{
        cause_at(*asked, pair->odd,
                 std::string(kind == trace::EvidenceKind::stay_from ? "This line leaves " : "This line puts ") +
                     mention(pair->odd) + " on `" + decided->name + "`, which is " + spoken_device(pair->odd.device) +
                     ". " + short_place(decided->at) + " gives `" + name + "` as well, and what it meets is on " +
                     spoken_device(pair->wanted.device) + "."),
        Fix{asked->file, asked->line,
            "Take `" + name + "` here, if that is where it is used; or move it where it is used: `" +
                move_call(pair->odd, pair->wanted) + "`."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
