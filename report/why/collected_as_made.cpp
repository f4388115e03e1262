// A loop, or a method that is called for each batch, collects in two lists: what it puts into one is brought to the
// host, what it puts into the other stays on the accelerator. Afterwards both are to be compared, or go to NumPy.
#include "report/frames.h"
#include "report/operands.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {
namespace {

// What came from an accelerator to where all is on the host.
const Operand* left_on_device(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !finding.where) return nullptr;
  if (trace::wants_host(finding.message)) return on_accelerator(*odd) ? odd : nullptr;
  const auto pair = pair_of(finding);
  if (!pair || pair->odd.on_cpu() == pair->wanted.on_cpu()) return nullptr;
  return pair->odd.on_cpu() ? &pair->wanted : &pair->odd;
}

}  // namespace

std::optional<Explanation> collected_as_made(const Finding& finding) {
  const Operand* left = left_on_device(finding);
  if (left == nullptr || !on_accelerator(*left)) return std::nullopt;
  const Evidence* collected = place_of(*left, trace::EvidenceKind::collected_at, finding);
  const Evidence* beside = place_of(*left, trace::EvidenceKind::collected_beside_at, finding);
  if (collected == nullptr || beside == nullptr) return std::nullopt;
  return Explanation{
      cause_at(collected->at, *left,
               "This line puts into `" + collected->text + "` what it has, on " + left->device + ". " +
                   short_place(beside->at) + ", beside it, brings to the host what it puts into `" + beside->text +
                   "`; what the two are used for in " + short_place(*finding.where) + " is there."),
      Fix{collected->at.file, collected->at.line,
          "Bring it to the host here, too, with `.cpu()`: it then takes no memory of " + left->device +
              " until it is used."}};
}

}  // namespace devsan::report::why
