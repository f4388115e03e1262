// `torch.stack([p.grad.norm() for p in parameters])`: the line that fails computes each entry where what it is computed
// from lies, and puts them together. What they come from is where it should be; to bring them together is this line's.
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// "tensors" of "tensors[2]"; empty for an operand that is no entry of a list.
std::string_view list_of(const Operand& operand) {
  const std::string_view arg = operand.arg;
  const std::size_t open = arg.find('[');
  return arg.substr(0, open == arg.npos ? 0 : open);
}

// A comprehension, or `map(f, things)`.
bool goes_through_list(std::string_view source) {
  return source.find(" for ") != source.npos || source.find("map(") != source.npos;
}

bool is_computed_here(const Operand& operand, const Finding& finding) {
  if (operand.lineage.empty() || !operand.name.empty()) return false;
  const LineageStep& newest = operand.lineage.front();
  return newest.how == trace::How::derived && made_in_failing_call(newest, finding);
}

// The line that computed both last; null where two did.
const Frame* made_by_one_line(const Pair& pair) {
  if (pair.odd.lineage.empty() || pair.wanted.lineage.empty()) return nullptr;
  const LineageStep& odd = pair.odd.lineage.front();
  const LineageStep& wanted = pair.wanted.lineage.front();
  const bool derived = odd.how == trace::How::derived && wanted.how == trace::How::derived;
  return derived && same_line(odd.at, wanted.at) ? &odd.at : nullptr;
}

// What a loop over the parts of a model has collected: one line computed them all, each where its part is, so that the
// line cannot bring them to one device without taking them from where they are used.
const Frame* computed_by_one_line(const Pair& pair, const Finding& finding) {
  // What an object keeps is no entry of what the line has made.
  if (evidence_of(pair.odd, trace::EvidenceKind::held_by_object) != nullptr ||
      evidence_of(pair.wanted, trace::EvidenceKind::held_by_object) != nullptr) {
    return nullptr;
  }
  const Frame* made = made_by_one_line(pair);
  return made != nullptr && !is_running(*made, finding) ? made : nullptr;
}

Explanation gathered_as_collected(const Frame& made, const Pair& pair, const Finding& finding) {
  const Frame& place = *finding.where;
  return {cause_at(place, pair.odd,
                   short_place(made) + " computes each entry of `" + std::string(list_of(pair.odd)) +
                       "` on the device of the part that it is called for. This line puts them together: " +
                       pair.wanted.device + " and " + pair.odd.device +
                       " are among these, and nothing brings them to one."),
          Fix{place.file, place.line,
              "Bring each entry to one device in this line: `.to(" + device_expression(pair.wanted) + ")`."}};
}

Fix brought_where_put(const Frame& put, const Pair& pair, const Finding& finding) {
  return {put.file, put.line,
          "Bring each to one device as it is put there; or in " + short_place(*finding.where) + ": `.to(" +
              device_expression(pair.wanted) + ")`."};
}

// `scales.append(m.scale.reshape(1))`, in a function that hands the list back: each entry could be brought over there.
Explanation gathered_where_put(const Evidence& put, const Pair& pair, const Finding& finding) {
  return {cause_at(put.at, pair.odd,
                   "This line puts what is on " + pair.wanted.device + " and what is on " + pair.odd.device +
                       " into one list, `" + put.text + "`, whose entries " + short_place(*finding.where) +
                       " puts together."),
          brought_where_put(put.at, pair, finding)};
}

// `norms.append(norm)`, in a loop whose line has computed both: the put is known, or is that line itself.
const Frame* put_in_loop(const Pair& pair, const Frame& made, const Finding& finding) {
  for (const Operand* one : {&pair.odd, &pair.wanted}) {
    const Evidence* put = place_of(*one, trace::EvidenceKind::entry_put_at, finding);
    if (put != nullptr && same_function(put->at, made)) return &put->at;
  }
  const std::string list = pair.odd.name.substr(0, pair.odd.name.find('['));  // "preds" of `preds[1]`
  const bool itself = made.statement().find(list + ".append(") != std::string::npos && is_changeable(made, finding);
  return itself ? &made : nullptr;
}

// The same on a part of the list that is on the CPU, which no line has moved there by mistake: each is where its part
// is.
std::optional<Explanation> put_by_one_line(const Pair& pair, const Finding& finding) {
  const Frame* made = made_by_one_line(pair);
  if (made == nullptr || made_in_failing_call(pair.odd.lineage.front(), finding)) return std::nullopt;
  const Frame* put = put_in_loop(pair, *made, finding);
  if (put == nullptr) return std::nullopt;
  return Explanation{cause_at(*put, pair.odd,
                              "This line puts what is on " + spoken_device(pair.wanted.device) + " and what is on " +
                                  spoken_device(pair.odd.device) + " into one list, each where it was computed; " +
                                  short_place(*finding.where) + " puts them together."),
                     brought_where_put(*put, pair, finding)};
}

// `selected = [states[k] for k in kept]`, over `torch.cat(selected)`: the line that makes the list could bring its
// entries to one device. Null where the failing line makes it, or another function.
const Evidence* list_made(const Operand& odd, const Finding& finding) {
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr || same_line(bound->at, *finding.where) || !same_function(bound->at, *finding.where)) {
    return nullptr;
  }
  const auto assigned = split_assignment(bound->at.statement());
  const bool comprehension = assigned && assigned->value.starts_with('[') && goes_through_list(assigned->value);
  return comprehension && assigned->target == bound->text ? bound : nullptr;
}

// `total = total + p.grad.norm()` in a loop: of the two, one is what an earlier turn of the same line has made.
std::optional<Explanation> added_up(const Pair& pair, const Finding& finding) {
  const Frame& place = *finding.where;
  const auto assigned = split_assignment(place.statement());
  if (!assigned || !is_changeable(place, finding)) return std::nullopt;
  const auto is_computed = [&](const Operand& one) {
    return !one.lineage.empty() && one.lineage.front().how == trace::How::derived &&
           same_line(one.lineage.front().at, place);
  };
  const auto is_total = [&](const Operand& one) {
    return one.name == assigned->target && one.is_scalar() && is_computed(one);
  };
  const bool first = is_total(pair.odd) && is_computed(pair.wanted);
  if (!first && !(is_total(pair.wanted) && is_computed(pair.odd))) return std::nullopt;
  const std::string name(assigned->target);
  return Explanation{
      cause_at(place, first ? pair.wanted : pair.odd,
               "This line adds up in `" + name + "` what it computes in each turn where that lies: on " +
                   pair.wanted.device + " and on " + pair.odd.device + ", and nothing brings these to one device."),
      Fix{place.file, place.line, "Bring what is added to the device of `" + name + "`: `.to(" + name + ".device)`."}};
}

}  // namespace

std::optional<Explanation> gathered_from_devices(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const bool between = on_accelerator(pair->odd) && on_accelerator(pair->wanted);
  if (auto total = between ? added_up(*pair, finding) : std::nullopt) return total;
  if (list_of(pair->odd).empty() || list_of(pair->odd) != list_of(pair->wanted)) return std::nullopt;
  if (!between) return put_by_one_line(*pair, finding);
  if (const Evidence* put = place_of(pair->odd, trace::EvidenceKind::gathered_at, finding)) {
    return gathered_where_put(*put, *pair, finding);
  }
  if (const Evidence* list = list_made(pair->odd, finding)) return gathered_where_put(*list, *pair, finding);
  if (auto put = put_by_one_line(*pair, finding)) return put;
  if (const Frame* made = computed_by_one_line(*pair, finding);
      made != nullptr && is_changeable(*finding.where, finding)) {
    return gathered_as_collected(*made, *pair, finding);
  }
  if (!is_computed_here(pair->odd, finding) || !is_computed_here(pair->wanted, finding)) return std::nullopt;
  // Entries that are written out one by one come from lines of their own.
  if (!is_changeable(*finding.where, finding) || !goes_through_list(finding.where->statement())) return std::nullopt;
  const Frame& place = *finding.where;
  return Explanation{
      cause_at(place, pair->odd,
               "This line computes each entry of `" + std::string(list_of(pair->odd)) +
                   "` on the device of what it is computed from, and puts them together: " + pair->wanted.device +
                   " and " + pair->odd.device + " are among these, and nothing brings them to one."),
      Fix{place.file, place.line,
          "Bring each entry to one device in this line, as soon as it is computed: `.to(" +
              device_expression(pair->wanted) + ")`."}};
}

}  // namespace devsan::report::why
