// A function brings what it works on to the host, `cost = cost.cpu()`, and picks from it by an index or a mask that is
// still on the accelerator. What was brought on purpose stays; the index has to follow.
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

bool is_index(const Operand& operand) {
  return operand.arg.starts_with("indices[");
}

// Where the failing function takes the index out of something; else the line that uses it.
const Frame& taken_at(const Operand& index, const Finding& finding) {
  const Evidence* bound = place_of(index, trace::EvidenceKind::bound_at, finding);
  const bool takes = bound != nullptr && same_function(bound->at, *finding.where) &&
                     split_assignment(bound->at.statement()) && only_takes_apart(bound->at.statement());
  return takes ? bound->at : *finding.where;
}

}  // namespace

std::optional<Explanation> index_not_brought(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || is_index(pair->odd) || !is_index(pair->wanted)) return std::nullopt;
  const LineageStep* move = newest_move_of(pair->odd);
  const bool here = move != nullptr && same_function(move->at, *finding.where) && names_device_itself(move->at);
  if (!here || !on_accelerator(pair->wanted)) return std::nullopt;
  const Frame& place = taken_at(pair->wanted, finding);
  if (!is_changeable(place, finding)) return std::nullopt;
  const std::string edit = assigned_after_move(place, "'cpu'");
  return Explanation{
      cause_at(place, pair->wanted,
               mention_first(pair->odd) + " was brought to the CPU in " + short_place(move->at) + ". " +
                   mention_first(pair->wanted) + ", which picks from it, is still on " +
                   spoken_device(pair->wanted.device) + "."),
      Fix{place.file, place.line,
          "Bring the index to the CPU, too" + (edit.empty() ? ", with `.cpu()`." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
