// A function that works on CPU tensors makes one of its own on an accelerator, whatever the others are on. The operand
// that meets it looks odd, for it is on the CPU; but so is everything else there.
#include <string_view>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Made in the failing function, by a line that names the accelerator in so many words. What was moved there from
// elsewhere is data, and wanted where it is.
const LineageStep* made_here(const Operand& operand, const Finding& finding) {
  const LineageStep* arrival = arrival_of(operand);
  if (arrival == nullptr || !is_changeable(arrival->at, finding)) return nullptr;
  const LineageStep& origin = operand.lineage.back();
  const bool fresh = origin.how == trace::How::created && same_line(origin.at, arrival->at);
  return fresh && same_function(arrival->at, *finding.where) && names_device_itself(arrival->at) ? arrival : nullptr;
}

}  // namespace

std::optional<Explanation> alone_on_accelerator(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || is_weight(pair->wanted)) return std::nullopt;
  // "cpu 7 of 8"
  const Evidence* elsewhere = evidence_of(pair->wanted, trace::EvidenceKind::locals_elsewhere);
  if (elsewhere == nullptr || !elsewhere->text.starts_with("cpu ")) return std::nullopt;
  const LineageStep* made = made_here(pair->wanted, finding);
  if (made == nullptr) return std::nullopt;
  std::string why = "This line puts " + mention(pair->wanted) + " on " + spoken_device(pair->wanted.device) + ". " +
                    elsewhere->text.substr(std::string_view("cpu ").size()) +
                    " tensors that this function works with are on the CPU, and what it meets is one of them.";
  return Explanation{
      cause_at(made->at, pair->wanted, std::move(why)),
      Fix{made->at.file, made->at.line,
          "Make it on the device of what it meets, `" + device_expression(pair->odd) + "`, instead of always on " +
              spoken_device(pair->wanted.device) + "; or move the others to " + spoken_device(pair->wanted.device) +
              " before this function is called."}};
}

}  // namespace devsan::report::why
