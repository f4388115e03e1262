// `MEAN = torch.tensor([...])` at the top of a file, and `x - MEAN` in a function: the constant is made when the file
// is read, before anybody knows a device, and the function works on the device of what it is given.
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// The line of the failing function that takes the constant by its name; the failing line where it came another way.
const Frame& taken_at(const Operand& odd, const std::string& name, const Finding& finding) {
  for (const LineageStep& step : odd.lineage) {
    const bool here = same_function(step.at, *finding.where) && step.how == trace::How::derived;
    if (here && find_name(step.at.statement(), name) != std::string_view::npos) return step.at;
  }
  return *finding.where;
}

}  // namespace

std::optional<Explanation> constant_of_module(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* constant = place_of(pair->odd, trace::EvidenceKind::module_constant_at, finding);
  if (constant == nullptr || is_beginning(*finding.where) || !is_changeable(*finding.where, finding)) {
    return std::nullopt;
  }
  const Frame& taken = taken_at(pair->odd, constant->text, finding);
  const bool by_name = !same_line(taken, *finding.where);
  const std::string edit =
      by_name ? constant->text + ".to('" + pair->wanted.device + "')" : move_call(pair->odd, pair->wanted);
  return Explanation{
      cause_at(taken, pair->odd,
               mention_first(pair->odd) + " comes from `" + constant->text + "`, which " + short_place(constant->at) +
                   " makes on the CPU when the file is read. What it meets here is on " +
                   spoken_device(pair->wanted.device) + "."),
      Fix{taken.file, taken.line, "Bring it to the device of what it meets, in this line: `" + edit + "`."}};
}

}  // namespace devsan::report::why
