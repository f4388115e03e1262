// A function moves a value in one of its branches, or others of its arguments, and leaves this one as it comes.
#include <algorithm>
#include <string>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

std::optional<Explanation> left_here(const LineageStep* left, const Frame& beside, const std::string& what,
                                     const Pair& pair, const Finding& finding) {
  if (left == nullptr || same_line(left->at, beside) || !is_changeable(left->at, finding)) return std::nullopt;
  const std::string edit = assigned_after_move(left->at, device_at(left->at, pair.wanted, finding));
  return Explanation{cause_at(left->at, pair.odd,
                              mention_first(pair.odd) + " comes from this line, on " + spoken_device(pair.odd.device) +
                                  ", which does not move it. " + short_place(beside) + " moves " + what + "."),
                     Fix{left->at.file, left->at.line,
                         "Move it here, too" +
                             (edit.empty() ? ", to " + spoken_device(pair.wanted.device) : ": `" + edit + "`") + "."}};
}

std::optional<Explanation> left_by(const Evidence& beside, const std::string& what, const Pair& pair,
                                   const Finding& finding) {
  if (beside.at.statement().find(".cpu()") != std::string::npos)
    return std::nullopt;  // that is no way to the other one
  return left_here(bound_in_function(pair.odd, beside.at), beside.at, what, pair, finding);
}

// `grid = torch.stack(axes).to(device)`, above `slopes = torch.stack([a.cos(), a.sin()])`: the function puts both
// together by the same operator, and moves the one that it has put together.
std::optional<Explanation> left_beside_alike(const Pair& pair, const Finding& finding) {
  const LineageStep* move = newest_move_of(pair.wanted);
  if (move == nullptr || moves_module(*move) || !same_function(move->at, *finding.where)) return std::nullopt;
  const auto made = std::ranges::find_if(pair.wanted.lineage, [&](const LineageStep& step) {
    return step.how == trace::How::derived && same_line(step.at, move->at) && joins_entries(step);
  });
  if (made == pair.wanted.lineage.end()) return std::nullopt;
  const auto alike = std::ranges::find_if(pair.odd.lineage, [&](const LineageStep& step) {
    return step.op == made->op && same_function(step.at, move->at) && split_assignment(step.at.statement());
  });
  if (alike == pair.odd.lineage.end()) return std::nullopt;
  return left_here(&*alike, move->at, "what it makes alike, for " + mention(pair.wanted), pair, finding);
}

// `freqs = self.freqs[None].to(x.device)`, above `positions = ids[:, None].float()`: the failing function asks for what
// it computes with to be where its input is, and has left out what it computes of another argument.
std::optional<Explanation> left_beside_stay(const Pair& pair, const Finding& finding) {
  const Evidence* stay = place_of(pair.wanted, trace::EvidenceKind::stayed_at, finding);
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  if (stay == nullptr || bound == nullptr || !same_function(stay->at, *finding.where) ||
      !same_function(bound->at, *finding.where) || same_line(stay->at, bound->at)) {
    return std::nullopt;
  }
  const LineageStep& newest = pair.odd.lineage.front();
  const bool of_argument = newest.how == trace::How::derived && same_line(newest.at, bound->at) &&
                           !same_function(pair.odd.lineage.back().at, *finding.where);
  if (!of_argument || !is_device_of_value(stay->at) || finding.where->function == "<module>") return std::nullopt;
  return left_by(*stay, "what it meets, which was there by then", pair, finding);
}

// `state.scales = weight.scales`, below `data = weight.data.to(device)`: a function takes two values for what it calls,
// and brings one of them.
std::optional<Explanation> taken_beside(const Pair& pair, const Finding& finding) {
  const LineageStep* move = newest_move_of(pair.wanted);
  if (move == nullptr || moves_module(*move) || !is_running(move->at, finding) || move->at.function == "<module>") {
    return std::nullopt;
  }
  const auto takes = [&](const Evidence& one) {
    const auto assigned = split_assignment(one.at.statement());
    return one.kind == trace::EvidenceKind::came_through_at && same_function(one.at, move->at) && assigned &&
           trace::is_word(assigned->value.front()) && assigned->value.find('(') == std::string::npos &&
           !same_line(one.at, move->at) && is_changeable(one.at, finding);
  };
  const auto taken = std::ranges::find_if(pair.odd.evidence, takes);
  if (taken == pair.odd.evidence.end()) return std::nullopt;
  const std::string edit = assigned_after_move(taken->at, device_at(taken->at, pair.wanted, finding));
  return Explanation{
      cause_at(taken->at, pair.odd,
               "This line takes `" + taken->text + "` as it is, on " + spoken_device(pair.odd.device) + ". " +
                   short_place(move->at) + " brings what it is used with to " + spoken_device(pair.wanted.device) +
                   "."),
      Fix{taken->at.file, taken->at.line, "Bring it there, too" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

}  // namespace

std::optional<Explanation> moved_beside(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || is_weight(pair->odd)) return std::nullopt;
  if (!was_never_moved(pair->odd) || pair->odd.lineage.empty()) return std::nullopt;
  const Evidence* branch = place_of(pair->odd, trace::EvidenceKind::branch_moves_at, finding);
  if (branch != nullptr) {
    if (auto left = left_by(*branch, "`" + branch->text + "` in another branch", *pair, finding)) return left;
  }
  if (auto left = left_beside_stay(*pair, finding)) return left;
  if (auto left = left_beside_alike(*pair, finding)) return left;
  if (auto taken = taken_beside(*pair, finding)) return taken;
  const Evidence* others = place_of(pair->odd, trace::EvidenceKind::arguments_moved_at, finding);
  // What the function makes itself, of a length that it is given, is no argument; what a loop goes through may be.
  const Frame& begun = pair->odd.lineage.back().at;
  const bool made_here = others != nullptr && same_function(begun, others->at) && !is_loop(begun);
  if (others == nullptr || made_here) return std::nullopt;
  return left_by(*others, "what comes with it, and not `" + others->text + "`", *pair, finding);
}

}  // namespace devsan::report::why
