// `bounds_cpu = bounds.cpu()` makes a copy for what works on the host, and says so by its name. A line that gives that
// copy to what works on the accelerator has taken the wrong one of the two.
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/host_names.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `bounds_cpu = bounds.cpu()`
struct HostCopy {
  const Frame* at;
  std::string_view name;
  std::string_view original;
};

std::optional<HostCopy> host_copy_of(const Operand& operand, const Finding& finding) {
  const LineageStep* move = newest_move_of(operand);
  if (move == nullptr || !operand.on_cpu() || !is_changeable(move->at, finding)) return std::nullopt;
  const auto assigned = split_assignment(move->at.statement());
  const auto call = assigned ? split_call(assigned->value) : std::nullopt;
  if (!call || call->receiver.empty() || call->receiver == assigned->target) return std::nullopt;
  if (!says_host(assigned->target) || says_host(call->receiver)) return std::nullopt;
  return HostCopy{&move->at, assigned->target, call->receiver};
}

bool uses(const Frame& place, const HostCopy& copy) {
  return same_function(place, *copy.at) && place.line > copy.at->line &&
         find_name(place.statement(), copy.name) != std::string_view::npos;
}

// The call that gives it; or the failing line, in the function that made it.
const Frame* used_at(const Operand& odd, const HostCopy& copy, const Finding& finding) {
  for (const Evidence& given : odd.evidence) {
    const bool hands = given.kind == trace::EvidenceKind::device_from || given.kind == trace::EvidenceKind::given_at;
    if (hands && is_changeable(given.at, finding) && uses(given.at, copy)) return &given.at;
  }
  return uses(*finding.where, copy) ? &*finding.where : nullptr;
}

}  // namespace

std::optional<Explanation> host_copy_given(const Finding& finding) {
  const auto pair = pair_of(finding);
  const auto copy = pair ? host_copy_of(pair->odd, finding) : std::nullopt;
  const Frame* used = copy ? used_at(pair->odd, *copy, finding) : nullptr;
  if (used == nullptr) return std::nullopt;
  const std::string name = "`" + std::string(copy->name) + "`";
  const std::string original = "`" + std::string(copy->original) + "`";
  return Explanation{cause_at(*used, pair->odd,
                              name + " is a copy of " + original + " that " + short_place(*copy->at) +
                                  " makes for the host, as its name says. This line takes it for what works on " +
                                  spoken_device(pair->wanted.device) + "."),
                     Fix{used->file, used->line, "Take " + original + " here, and not the copy."}};
}

}  // namespace devsan::report::why
