// `count = (ids != 0).sum()`, `best = checkpoint["best"]`: a number that stays a tensor stays on its accelerator, too.
// What it is computed from may belong there; a number is wanted anywhere.
#include <string>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// The line of the failing function that gives the number its name.
const Evidence* named_at(const Operand& number, const Finding& finding) {
  const Evidence* bound = place_of(number, trace::EvidenceKind::bound_at, finding);
  const bool here = bound != nullptr && bound->text == number.name && same_function(bound->at, *finding.where) &&
                    !same_line(bound->at, *finding.where);
  return here && !is_loop(bound->at) && split_assignment(bound->at.statement()) ? bound : nullptr;
}

}  // namespace

std::optional<Explanation> number_left_elsewhere(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.is_scalar() || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted))
    return std::nullopt;
  const Evidence* named = named_at(pair->odd, finding);
  const bool begins =
      named != nullptr && !pair->odd.lineage.empty() && same_line(pair->odd.lineage.back().at, named->at);
  if (named == nullptr || begins) return std::nullopt;
  const std::string edit = assigned_after_move(named->at, device_at(named->at, pair->wanted, finding));
  return Explanation{
      cause_at(named->at, pair->odd,
               "This line leaves the number `" + named->text + "` on " + pair->odd.device +
                   ", where it was computed. What it meets is on " + pair->wanted.device + "."),
      Fix{named->at.file, named->at.line,
          "Make it a number of Python with `.item()`" +
              (edit.empty() ? ", or move it to " + pair->wanted.device + "." : ", or move it: `" + edit + "`.")}};
}

}  // namespace devsan::report::why
