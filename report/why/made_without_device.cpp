// Factories make their tensors on the default device, the CPU unless told otherwise.
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

std::string on_which(const Operand& odd) {
  return odd.on_cpu() ? ", on the CPU because no device is given"
                      : ", on " + odd.device + ", the default device of that moment, because none is given";
}

}  // namespace

std::optional<Explanation> made_without_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || newest_move_of(pair->odd) != nullptr) return std::nullopt;
  const LineageStep* origin = arrival_of(pair->odd);
  if (origin == nullptr || origin->how != trace::How::created || !is_changeable(origin->at, finding)) {
    return std::nullopt;
  }
  const bool named = names_device(origin->at);
  RootCause cause = cause_at(origin->at, pair->odd,
                             mention_first(pair->odd) + " begins in this line" +
                                 (named ? ", on " + spoken_device(pair->odd.device) : on_which(pair->odd)) + ".");
  const std::string device = device_at(origin->at, pair->wanted, finding);
  const std::string edit = named ? "" : with_argument(call_at(origin->at), "device=" + device);
  std::string text = named          ? "Make it on " + spoken_device(pair->wanted.device)
                     : edit.empty() ? "Pass `device=" + device + "`"
                                    : "Pass the device: `" + edit + "`";
  if (!made_in_failing_call(*origin, finding)) {
    text += ", or move it where it is used, in " + short_place(*finding.where) + ": `" +
            move_call(pair->odd, pair->wanted) + "`";
  }
  return Explanation{std::move(cause), Fix{origin->at.file, origin->at.line, text + "."}};
}

}  // namespace devsan::report::why
