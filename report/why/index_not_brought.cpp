// A function brings what it works on to the host, `cost = cost.cpu()`, and picks from it by an index or a mask that is
// still on the accelerator. What was brought on purpose stays; the index has to follow.
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

bool is_index(const Operand& operand) {
  return operand.arg.starts_with("indices[");
}

Fix bring_index(const std::string& to, const Frame& place) {
  const std::string edit = assigned_after_move(place, "'cpu'");
  return {place.file, place.line,
          "Bring the index to " + to + (edit.empty() ? ", with `.cpu()`." : ": `" + edit + "`.")};
}

// `found = scores.topk(3).indices`, above the failing line: where the function computes the index. Null without one.
const Frame* found_at(const Operand& index, const Finding& finding) {
  if (index.lineage.empty()) return nullptr;
  const LineageStep& newest = index.lineage.front();
  const bool here = newest.how == trace::How::derived && same_function(newest.at, *finding.where) &&
                    !same_line(newest.at, *finding.where) && split_assignment(newest.at.statement());
  return here && is_changeable(newest.at, finding) ? &newest.at : nullptr;
}

// Where the failing function takes the index out of something, or computes it; else the line that uses it. What an
// autograd Function has saved, its forward made.
const Frame& taken_at(const Operand& index, const Finding& finding) {
  const Evidence* bound = place_of(index, trace::EvidenceKind::bound_at, finding);
  const LineageStep* arrival = arrival_of(index);
  const bool saved = bound != nullptr && bound->at.statement().find(".saved_tensors") != std::string::npos;
  if (saved && arrival != nullptr && class_of(arrival->at) == class_of(*finding.where)) return arrival->at;
  const bool takes = bound != nullptr && same_function(bound->at, *finding.where) &&
                     split_assignment(bound->at.statement()) && only_takes_apart(bound->at.statement());
  if (takes) return bound->at;
  const Frame* found = found_at(index, finding);
  return found != nullptr ? *found : *finding.where;
}

// `names = classes[labels].cpu()`: the host picks from what is there, and wants the result there. What computes the
// labels can bring them.
std::optional<Explanation> picked_for_host(const Pair& pair, const Finding& finding) {
  const std::string_view behind = behind_call(*finding.where);
  const Frame* found = found_at(pair.wanted, finding);
  const bool host = behind.starts_with('.') && trace::brings_to_host(" " + std::string(behind));
  if (!host || found == nullptr || is_weight(pair.odd) ||
      evidence_of(pair.odd, trace::EvidenceKind::held_by_module) != nullptr) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(*found, pair.wanted,
               "This line computes " + mention(pair.wanted) + " on " + spoken_device(pair.wanted.device) +
                   ". It picks from " + mention(pair.odd) + ", on the CPU, and " + short_place(*finding.where) +
                   " takes the result to the host."),
      bring_index("the CPU, too", *found)};
}

// `rows = table[ids].to(device)`: what is picked is taken to an accelerator by the failing line itself.
bool is_moved_when_picked(const Frame& place) {
  const std::string_view behind = behind_call(place);
  return behind.starts_with('.') && calls_move(behind.substr(0, behind.find('(') + 1));
}

// The table is meant to be on the host then, and the index to come to it there. Who brought the index to an accelerator
// may leave it; where that is not known, or another thing was brought, it is the failing line's to bring it back.
std::optional<Explanation> picked_on_host(const Pair& pair, const Finding& finding) {
  if (!is_moved_when_picked(*finding.where) || !is_changeable(*finding.where, finding)) return std::nullopt;
  // What a module keeps should have moved with it.
  if (is_weight(pair.odd) || evidence_of(pair.odd, trace::EvidenceKind::held_by_module) != nullptr) return std::nullopt;
  const LineageStep* move = newest_move_of(pair.wanted);
  const bool itself = move != nullptr && move == &pair.wanted.lineage.front() && is_changeable(move->at, finding);
  const Frame& place = itself ? move->at : *finding.where;
  const std::string there = spoken_device(pair.wanted.device);
  const std::string host = move_call(pair.wanted, pair.odd);
  return Explanation{
      cause_at(place, pair.wanted,
               (itself ? "This line brings " + mention(pair.wanted) + " to " + there + ". It picks from "
                       : mention_first(pair.wanted) + ", on " + there + ", picks from ") +
                   mention(pair.odd) + ", on the CPU, and only what is picked goes to an accelerator, in " +
                   short_place(*finding.where) + "."),
      Fix{place.file, place.line,
          itself ? "Leave the index on the CPU here; or bring it there where it picks, in " +
                       short_place(*finding.where) + ": `" + host + "`."
                 : "Bring the index to the CPU where it picks: `" + host + "`."}};
}

// `ids = pivots(score(rows.to(device)))`, of rows that were made of what the ids pick from: a function of the host has
// taken a copy to an accelerator, and works on with what comes of that. The newest line that computes the index could
// bring it back.
std::optional<Explanation> found_in_copy(const Pair& pair, const Finding& finding) {
  const LineageStep* move = newest_move_of(pair.wanted);
  if (move == nullptr || moves_module(*move) || pair.odd.lineage.empty() || !was_never_moved(pair.odd)) {
    return std::nullopt;
  }
  const LineageStep& found = pair.wanted.lineage.front();
  const bool own = evidence_of(pair.odd, trace::EvidenceKind::held_by_object) != nullptr &&
                   same_line(pair.odd.lineage.back().at, pair.wanted.lineage.back().at);
  const bool alone = evidence_of(pair.wanted, trace::EvidenceKind::alone_on_device) != nullptr;
  if (!own || !alone || found.how != trace::How::derived || !is_changeable(found.at, finding) ||
      same_line(found.at, *finding.where)) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(found.at, pair.wanted,
               "This line computes " + mention(pair.wanted) + " on " + spoken_device(pair.wanted.device) +
                   ", from a copy that " + short_place(move->at) + " took there. It picks from " + mention(pair.odd) +
                   ", which is kept on the CPU. Nothing else of the program is on " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{found.at.file, found.at.line, "Bring the index back to the CPU here, with `.cpu()`."}};
}

// `inside = nonzero(batch["mask"])`, in a function that picks by it from a script's images, which it is given, too:
// what it computes itself is what it can bring to them.
std::optional<Explanation> found_in_given(const Pair& pair, const Finding& finding) {
  const auto is_here = [&](const Frame& place) { return same_function(place, *finding.where); };
  const bool given = pair.odd.is == trace::NameKind::local && !is_weight(pair.odd) && !pair.odd.lineage.empty() &&
                     pair.odd.lineage.front().how == trace::How::created &&
                     pair.odd.lineage.front().at.function == "<module>";
  if (!given || pair.wanted.lineage.empty() || is_here(pair.wanted.lineage.back().at)) return std::nullopt;
  const LineageStep* found = nullptr;
  for (const LineageStep& step : pair.wanted.lineage) {
    if (step.how == trace::How::derived && is_here(step.at) && !made_in_failing_call(step, finding)) found = &step;
  }
  if (found == nullptr || !is_changeable(found->at, finding) || finding.where->function == "<module>") {
    return std::nullopt;
  }
  return Explanation{cause_at(found->at, pair.wanted,
                              "This line computes " + mention(pair.wanted) + ", or what that is taken from, on " +
                                  spoken_device(pair.wanted.device) + ". It picks from " + mention(pair.odd) +
                                  ", which this function is given on the CPU."),
                     bring_index("what it picks from", found->at)};
}

// `rows = sample["rows"].cpu()`, `mask = sample["mask"]`, and then `split(rows, mask)`: the caller brings one of the
// two.
std::optional<Explanation> left_by_caller(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const Evidence* bound = place_of(pair.wanted, trace::EvidenceKind::bound_at, finding);
  const bool beside = bound != nullptr && same_function(bound->at, move.at) && names_device_itself(move.at) &&
                      split_assignment(bound->at.statement()) && only_takes_apart(bound->at.statement());
  if (!beside || same_line(bound->at, move.at) || !is_changeable(bound->at, finding)) return std::nullopt;
  return Explanation{cause_at(bound->at, pair.wanted,
                              "This line leaves `" + bound->text + "` on " + spoken_device(pair.wanted.device) +
                                  ". What it picks from, " + mention(pair.odd) + ", is brought to the CPU in " +
                                  short_place(move.at) + "."),
                     bring_index("the CPU, too", bound->at)};
}

}  // namespace

std::optional<Explanation> index_not_brought(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || is_index(pair->odd) || !is_index(pair->wanted)) return std::nullopt;
  const LineageStep* move = newest_move_of(pair->odd);
  if (!on_accelerator(pair->wanted)) return std::nullopt;
  if (move == nullptr) {
    if (auto picked = picked_on_host(*pair, finding)) return picked;
    if (auto picked = picked_for_host(*pair, finding)) return picked;
    if (auto copied = found_in_copy(*pair, finding)) return copied;
    return found_in_given(*pair, finding);
  }
  const bool own = same_function(move->at, *finding.where) || is_in_own_forward(move->at, finding);
  const bool here = own && names_device_itself(move->at);
  if (!here) return left_by_caller(*move, *pair, finding);
  const Frame& place = taken_at(pair->wanted, finding);
  if (!is_changeable(place, finding)) return std::nullopt;
  return Explanation{cause_at(place, pair->wanted,
                              mention_first(pair->odd) + " was brought to the CPU in " + short_place(move->at) + ". " +
                                  mention_first(pair->wanted) + ", which picks from it, is still on " +
                                  spoken_device(pair->wanted.device) + "."),
                     bring_index("the CPU, too", place)};
}

}  // namespace devsan::report::why
