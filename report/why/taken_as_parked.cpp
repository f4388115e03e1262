// A value was sent to the host on purpose, to be kept there: a replay buffer, saved activations, an offloaded state, a
// cache that was made there. Whoever takes it out has to bring it back, and did not.
#include <algorithm>
#include <array>
#include <string_view>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/host_names.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

bool puts_away(std::string_view source) {
  constexpr std::array<std::string_view, 11> kPuts = {".append(", ".appendleft(",       ".add(",           ".extend(",
                                                      ".put(",    ".put_nowait(",       ".setdefault(",    ".insert(",
                                                      " += [",    "save_for_backward(", "register_buffer("};
  const auto puts = [source](std::string_view one) { return source.find(one) != source.npos; };
  if (std::ranges::any_of(kPuts, puts)) return true;
  const auto assigned = split_assignment(source);
  return stores_entry(source) ||
         (assigned && (assigned->target.starts_with("self.") || assigned->target.starts_with("ctx.")));
}

// The innermost method that works with weights which an offloader has put away: it has to bring together what it uses,
// since its module's parts may be anywhere. A function that it calls is given what it is given.
std::optional<Explanation> used_while_offloaded(const Pair& pair, const Finding& finding) {
  const LineageStep* move = offloaded_in_place(pair.odd, finding);
  const Operand& kept = move != nullptr ? pair.odd : pair.wanted;
  const Operand& other = move != nullptr ? pair.wanted : pair.odd;
  if (move == nullptr) move = offloaded_in_place(kept, finding);
  constexpr std::array kOfModules = {trace::EvidenceKind::root_name, trace::EvidenceKind::module_bound_at,
                                     trace::EvidenceKind::module_made_at};
  const bool of_module = is_weight(other) || std::ranges::any_of(kOfModules, [&](trace::EvidenceKind kind) {
                           return evidence_of(other, kind) != nullptr;
                         });
  if (move == nullptr || !on_accelerator(other) || !of_module) return std::nullopt;
  const auto method = std::ranges::find_if(finding.stack, [&](const Frame& frame) {
    return is_changeable(frame, finding) && frame.function.find('.') != std::string::npos &&
           frame.function.find("<locals>") == std::string::npos;
  });
  if (method == finding.stack.end()) return std::nullopt;
  return Explanation{cause_at(*method, kept,
                              short_place(move->at) + " puts " +
                                  (&kept.lineage.front() == move ? "" : "what it is computed from, ") + mention(kept) +
                                  ", away to the CPU, whenever that is to save memory. This line works with it as it "
                                  "is, beside what is on " +
                                  spoken_device(other.device) + "."),
                     Fix{method->file, method->line,
                         "Bring one of the two to the other's device in this line; or bring the weights back before."}};
}

// The line that sends it to the host, and keeps it.
const Frame* parked_at(const Operand& operand, const Finding& finding) {
  if (const Evidence* filled = place_of(operand, trace::EvidenceKind::filled_from_host_at, finding)) return &filled->at;
  // `.to(state["storage"])`, where that is the host.
  const Evidence* stayed = place_of(operand, trace::EvidenceKind::stayed_at, finding);
  if (stayed != nullptr && moves_to_store(stayed->at) && puts_away(stayed->at.statement()) &&
      !is_running(stayed->at, finding)) {
    return &stayed->at;
  }
  const LineageStep* move = newest_move_of(operand);
  // A weight that went there with its module is used where the module runs, which takes nothing out.
  const bool with_module = move != nullptr && moves_module(*move) && is_weight(operand) &&
                           evidence_of(operand, trace::EvidenceKind::weight_put_at) == nullptr;
  const bool said =
      move != nullptr && !with_module && is_changeable(move->at, finding) && names_device_itself(move->at);
  return said && puts_away(move->at.statement()) && !is_running(move->at, finding) ? &move->at : nullptr;
}

// A line that takes something out, rather than putting it in: in another function, or at least in another line where
// what is kept was made before.
bool is_apart(const Frame& place, const Frame& parked, const Operand& operand) {
  const bool made_before = evidence_of(operand, trace::EvidenceKind::filled_from_host_at) != nullptr;
  return made_before ? !same_line(place, parked) : !same_function(place, parked);
}

// `kept = {}`: nothing is taken out here.
bool makes_container(const Frame& place) {
  const auto assigned = split_assignment(place.statement());
  if (!assigned) return false;
  constexpr std::array<std::string_view, 6> kEmpty = {"{}", "[]", "dict()", "list()", "defaultdict(", "deque("};
  return std::ranges::any_of(kEmpty, [&](std::string_view made) { return assigned->value.find(made) != made.npos; });
}

// `kwargs = dict(self.kept)`: the first variable that it came through since it was parked; null without one.
const Frame* came_out_at(const Operand& operand, const Frame& parked, const Finding& finding) {
  const Frame* place = nullptr;
  for (const Evidence& one : operand.evidence) {
    const bool variable = one.kind == trace::EvidenceKind::came_through_at && one.text.find('.') == std::string::npos;
    if (!variable || !is_changeable(one.at, finding) || makes_container(one.at)) continue;
    if (is_apart(one.at, parked, operand) && split_assignment(one.at.statement())) place = &one.at;
  }
  return place;
}

// The first line that makes something of it; else the one that gets it, or is given it.
const Frame* taken_at(const Operand& operand, const Frame& parked, const Finding& finding) {
  if (is_weight(operand)) {
    const Evidence* put = place_of(operand, trace::EvidenceKind::weight_put_at, finding);
    if (put != nullptr && is_apart(put->at, parked, operand)) return &put->at;
  }
  const Frame* first = nullptr;
  for (const LineageStep& step : operand.lineage) {
    if (&step.at == &parked || step.how == trace::How::created) break;
    if (is_changeable(step.at, finding) && is_apart(step.at, parked, operand)) first = &step.at;
  }
  if (first != nullptr) return first;
  if (const Evidence* taken = place_of(operand, trace::EvidenceKind::taken_out_at, finding)) return &taken->at;
  // `mask = kept[at]["mask"]`, the only one of several lines that takes an entry out.
  const Evidence* perhaps = perhaps_taken(operand, finding);
  if (perhaps != nullptr && is_apart(perhaps->at, parked, operand)) {
    const auto assigned = split_assignment(perhaps->at.statement());
    if (assigned && assigned->value.ends_with(']')) return &perhaps->at;
  }
  // The outermost of the calls that gave it comes last.
  const Frame* place = nullptr;
  for (const Evidence& evidence : operand.evidence) {
    const bool got = evidence.kind == trace::EvidenceKind::bound_at || evidence.kind == trace::EvidenceKind::given_at;
    const bool usable = is_changeable(evidence.at, finding) && is_apart(evidence.at, parked, operand);
    if (evidence.kind == trace::EvidenceKind::sibling_moved && usable) return &evidence.at;
    // Between a container that a function has made and what fails in it nobody takes anything out.
    if (evidence.kind == trace::EvidenceKind::bound_at && usable && makes_container(evidence.at)) return nullptr;
    if (got && usable) place = &evidence.at;
    if (evidence.kind == trace::EvidenceKind::bound_at && usable) break;
  }
  if (place != nullptr) return place;
  if (const Frame* out = came_out_at(operand, parked, finding)) return out;
  return is_changeable(*finding.where, finding) ? &*finding.where : nullptr;
}

}  // namespace

std::optional<Explanation> taken_as_parked(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  if (auto offloaded = used_while_offloaded(*pair, finding)) return offloaded;
  // A weight is where its model works, however many values from the host it meets.
  const bool many = !pair->odd.on_cpu() && is_weight(pair->odd);
  const Operand& kept = many ? pair->wanted : pair->odd;
  const Operand& other = many ? pair->odd : pair->wanted;
  if (!kept.on_cpu() || !on_accelerator(other)) return std::nullopt;
  const Frame* parked = parked_at(kept, finding);
  const Frame* taken = parked != nullptr ? taken_at(kept, *parked, finding) : nullptr;
  if (taken == nullptr) return std::nullopt;
  std::string why = short_place(*parked) +
                    " sends the value to the CPU, to be kept there. This line takes it out, and " +
                    "leaves it on the CPU; what it meets is on " + spoken_device(other.device) + ".";
  const Evidence* sibling = place_of(kept, trace::EvidenceKind::sibling_moved, finding);
  if (sibling != nullptr && taken == &sibling->at) {
    why += " `" + sibling->text + "`, which was kept with it, is brought back here.";
  }
  const bool here = same_line(*taken, *finding.where);
  const std::string edit =
      here ? "`" + move_call(kept, other) + "`" : assigned_after_move(*taken, device_at(*taken, other, finding));
  return Explanation{cause_at(*taken, kept, std::move(why)),
                     Fix{taken->file, taken->line,
                         "Bring it back to " + spoken_device(other.device) + " in this line" +
                             (edit.empty() ? "" : ": " + (here ? edit : "`" + edit + "`")) + "."}};
}

}  // namespace devsan::report::why
