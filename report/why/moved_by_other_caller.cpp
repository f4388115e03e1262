// A helper makes its tensors on the host, as tokenizers and datasets do, and leaves it to its callers to move them. One
// does, and the one that asked for this value does not.
#include <algorithm>
#include <string>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

Explanation explain_asked(const Frame& asked, const Frame& moved, const LineageStep& made, const Pair& pair,
                          const Finding& finding) {
  const std::string verb = made.how == trace::How::derived ? "computes" : "makes";
  const std::string edit = assigned_after_move(asked, device_at(asked, pair.wanted, finding));
  return Explanation{
      cause_at(asked, pair.odd,
               mention_first(pair.odd) + " is what this call got from " + short_place(made.at) + ", which " + verb +
                   " it on the CPU. " + short_place(moved) + " moves what it got from there to " + pair.wanted.device +
                   "; here nothing does."),
      Fix{asked.file, asked.line,
          "Move it here, too" + (edit.empty() ? ", to " + pair.wanted.device : ": `" + edit + "`") + "."}};
}

// A processor has computed it, and of the functions that call it another one moves the result.
std::optional<Explanation> computed_for_two(const Pair& pair, const Evidence& asked, const Finding& finding) {
  const Evidence* moved = place_of(pair.odd, trace::EvidenceKind::computed_alike_moved_at, finding);
  if (moved == nullptr || same_line(moved->at, asked.at) || pair.odd.lineage.empty()) return std::nullopt;
  const auto made = std::ranges::find_if(pair.odd.lineage, [&](const LineageStep& step) {
    return step.how == trace::How::derived && !is_running(step.at, finding) && !same_function(step.at, asked.at);
  });
  if (made == pair.odd.lineage.end()) return std::nullopt;
  return explain_asked(asked.at, moved->at, *made, pair, finding);
}

// `self.positions = Positions(n)`, in a method that is no constructor: what a module computes that was made after the
// model had moved, with one like it.
std::optional<Explanation> module_made_anew(const Frame& asked, const Frame& moved, const Pair& pair,
                                            const Finding& finding) {
  const auto assigned = split_assignment(asked.statement());
  const bool replaces = assigned && assigned->target.starts_with("self.") && !is_constructor(asked);
  const bool of_module = pair.odd.lineage.back().innermost.file.find("/torch/nn/") != std::string::npos;
  if (!replaces || !of_module || evidence_of(pair.odd, trace::EvidenceKind::model_spread) == nullptr) {
    return std::nullopt;
  }
  const std::string edit = assigned_after_move(asked, device_at(asked, pair.wanted, finding));
  return Explanation{cause_at(asked, pair.odd,
                              mention_first(pair.odd) + " is computed with a weight of `" +
                                  std::string(assigned->target) + "`, which this line makes anew, on the CPU. " +
                                  short_place(moved) + " had moved the one before it to " + pair.wanted.device + "."),
                     Fix{asked.file, asked.line,
                         "Move it here" + (edit.empty() ? ", to " + pair.wanted.device : ": `" + edit + "`") + "."}};
}

}  // namespace

std::optional<Explanation> moved_by_other_caller(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  if (is_weight(pair->odd) || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* asked = place_of(pair->odd, trace::EvidenceKind::asked_apart_at, finding);
  if (asked == nullptr || drops_result(asked->at)) return std::nullopt;
  if (auto computed = computed_for_two(*pair, *asked, finding)) return computed;
  const LineageStep* arrival = arrival_of(pair->odd);
  const Evidence* moved = place_of(pair->odd, trace::EvidenceKind::made_alike_moved_at, finding);
  if (arrival == nullptr || moved == nullptr || is_running(arrival->at, finding)) return std::nullopt;
  // What an object keeps is no value that its maker has asked for.
  if (is_constructor(arrival->at) && arrival->at.function != "<module>") {
    return module_made_anew(asked->at, moved->at, *pair, finding);
  }
  // A maker that moves what it makes does so for everybody, to the device that it is told.
  if (same_line(moved->at, asked->at) || same_function(moved->at, arrival->at)) return std::nullopt;
  return explain_asked(asked->at, moved->at, *arrival, *pair, finding);
}

}  // namespace devsan::report::why
