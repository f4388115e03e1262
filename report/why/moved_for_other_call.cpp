// One line gives a function a copy that it moves for that call, `encode(x.to(device))`; another line gives the same
// function the value as it is.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// "self.vision" of the call in `self.vision(images.to(dev))` that is given what this position copies; empty where the
// copy goes elsewhere.
std::string given_to(const Frame& copy) {
  const std::string moved = call_at(copy);
  const std::size_t at = moved.empty() ? std::string::npos : copy.source.find(moved);
  if (at == std::string::npos || at < 2 || copy.source[at - 1] != '(') return "";
  std::size_t begin = at - 1;
  const auto belongs = [](char c) { return trace::is_word(c) || c == '.'; };
  while (begin > 0 && belongs(copy.source[begin - 1])) --begin;
  return copy.source.substr(begin, at - 1 - begin);
}

}  // namespace

std::optional<Explanation> moved_for_other_call(const Finding& finding) {
  const auto pair = pair_of(finding);
  const Evidence* copy = pair ? place_of(pair->odd, trace::EvidenceKind::copied_away, finding) : nullptr;
  const std::string callee = copy != nullptr ? given_to(copy->at) : "";
  if (callee.empty() || copy->text != pair->wanted.device) return std::nullopt;
  for (const Evidence& given : pair->odd.evidence) {
    if (given.kind != trace::EvidenceKind::given_at || !is_changeable(given.at, finding)) continue;
    if (same_line(given.at, copy->at) || !call_at(given.at).starts_with(callee + "(")) continue;
    return Explanation{
        cause_at(given.at, pair->odd,
                 "This line gives `" + given.text + "` to `" + callee + "` as it is, on " +
                     spoken_device(pair->odd.device) + "; " + short_place(copy->at) + " gives it a copy on " +
                     copy->text + ", which leaves the tensor itself where it is."),
        Fix{given.at.file, given.at.line,
            "Move it for this call, too: `" +
                (is_postfix_expression(given.text) ? given.text : "(" + given.text + ")") + ".to('" + copy->text +
                "')`; or keep the copy."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
