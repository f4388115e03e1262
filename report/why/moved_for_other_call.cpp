// One line gives a function a copy that it moves for that call, `encode(x.to(device))`; another line gives the same
// function the value as it is.
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// "image=" of `self.vision(ids, image=images.to(dev))` where the copy is at `at`: how it is given by a name. Empty
// where it is not.
std::string_view keyword_before(std::string_view text, std::size_t at) {
  std::size_t begin = at > 0 && text[at - 1] == '=' ? at - 1 : at;
  while (begin < at && begin > 0 && trace::is_word(text[begin - 1])) --begin;
  const bool argument = begin > 0 && std::string_view("(, ").find(text[begin - 1]) != std::string_view::npos;
  return argument ? text.substr(begin, at - begin) : std::string_view();
}

// The bracket that is open at a place of a text; npos without one.
std::size_t open_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at-- > 0) {
    if (std::string_view(")]}").find(text[at]) != std::string_view::npos) ++depth;
    if (std::string_view("([{").find(text[at]) != std::string_view::npos && --depth < 0) return at;
  }
  return std::string_view::npos;
}

// "self.vision" of the call in `self.vision(images.to(dev))` and in `self.vision(ids, image=images.to(dev))` that is
// given what this position copies, as its first argument or by a name; empty where the copy goes elsewhere.
std::string given_to(const Frame& copy) {
  const std::string moved = call_at(copy);
  const std::size_t at = moved.empty() ? std::string::npos : copy.statement().find(moved);
  if (at == std::string::npos) return "";
  const std::size_t open = open_bracket(copy.statement(), at);
  if (open == std::string::npos || copy.statement()[open] != '(') return "";
  if (open + 1 != at && keyword_before(copy.statement(), at).empty()) return "";
  std::size_t begin = open;
  const auto belongs = [](char c) { return trace::is_word(c) || c == '.'; };
  while (begin > 0 && belongs(copy.statement()[begin - 1])) --begin;
  return copy.statement().substr(begin, open - begin);
}

// Whether the call at a position, which may go on over several lines, is one of a function by this name.
bool calls(const Frame& place, const std::string& callee) {
  const std::string call = call_at(place);
  if (!call.empty()) return call.starts_with(callee + "(");
  const std::size_t at = find_name(place.statement(), callee);
  return at != std::string::npos && place.statement().compare(at + callee.size(), 1, "(") == 0;
}

// What tells of the copy, and of the calls that gave the tensor itself.
struct Kinds {
  trace::EvidenceKind copied;
  trace::EvidenceKind given;
};

std::optional<Explanation> given_unmoved(const Pair& pair, const Kinds& kinds, const Finding& finding) {
  const Evidence* copy = place_of(pair.odd, kinds.copied, finding);
  const std::string callee = copy != nullptr ? given_to(copy->at) : "";
  if (callee.empty() || copy->text != pair.wanted.device) return std::nullopt;
  for (const Evidence& given : pair.odd.evidence) {
    if (given.kind != kinds.given || !is_changeable(given.at, finding) || same_line(given.at, copy->at)) continue;
    if (!calls(given.at, callee)) continue;
    const Frame place = line_of_argument(given.at, given.text);
    return Explanation{
        cause_at(place, pair.odd,
                 "This line gives `" + given.text + "` to `" + callee + "` as it is, on " +
                     spoken_device(pair.odd.device) + "; " + short_place(copy->at) + " gives it a copy on " +
                     copy->text + ", which leaves the tensor itself where it is."),
        Fix{place.file, place.line,
            "Move it for this call, too: `" +
                (is_postfix_expression(given.text) ? given.text : "(" + given.text + ")") + ".to('" + copy->text +
                "')`; or keep the copy."}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Explanation> moved_for_other_call(const Finding& finding) {
  const auto pair = pair_of(finding);
  // Its module has come to where the value is since the other call, and the attribute that it meets has not.
  if (!pair || holder_moved_to(pair->wanted, pair->odd.device) != nullptr) return std::nullopt;
  constexpr Kinds kItself = {trace::EvidenceKind::copied_away, trace::EvidenceKind::given_at};
  constexpr Kinds kSource = {trace::EvidenceKind::source_copied_at, trace::EvidenceKind::source_given_at};
  if (auto itself = given_unmoved(*pair, kItself, finding)) return itself;
  return given_unmoved(*pair, kSource, finding);
}

}  // namespace devsan::report::why
