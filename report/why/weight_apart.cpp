// A model is used where it was made, and one weight of it was made elsewhere: a layer that takes the current GPU by
// itself. The operand that meets it looks odd, for it is on the CPU; but so is nearly all of the model.
#include <string_view>

#include "report/why/decision.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// "cpu 10 of 12 Decoder"
struct Rest {
  std::string_view device;
  std::string_view share;
  std::string_view model;

  explicit Rest(std::string_view text) {
    const std::size_t share_at = text.find(' ');
    const std::size_t model_at = text.rfind(' ');
    if (share_at == text.npos || model_at == share_at) return;
    device = text.substr(0, share_at);
    share = text.substr(share_at + 1, model_at - share_at - 1);
    model = text.substr(model_at + 1);
  }
};

}  // namespace

std::optional<Explanation> weight_apart(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_weight(pair->wanted) || offloaded_in_place(pair->odd, finding) != nullptr) return std::nullopt;
  const Evidence* elsewhere = evidence_of(pair->wanted, trace::EvidenceKind::weights_elsewhere);
  const LineageStep* made = arrival_of(pair->wanted);
  if (elsewhere == nullptr || made == nullptr || made->how != trace::How::created) return std::nullopt;
  const Rest rest(elsewhere->text);
  if (rest.device != pair->odd.device) return std::nullopt;
  const auto decided = decision_of(pair->wanted, trace::EvidenceKind::device_from, finding);
  const Frame& place = decided ? decided->at : made->at;
  if (!is_changeable(place, finding)) return std::nullopt;
  std::string why = mention_first(pair->wanted) + " is made on " + spoken_device(pair->wanted.device);
  why += decided ? " " + because_of(*decided) + "; " : " here; ";
  why += std::string(rest.share) + " parameters and buffers of `" + std::string(rest.model) + "` are on " +
         spoken_device(rest.device) + ".";
  return Explanation{
      cause_at(place, pair->wanted, std::move(why)),
      Fix{place.file, place.line,
          "Make it on " + spoken_device(pair->odd.device) + ", where the rest of the model is; or move " +
              "the whole model to " + spoken_device(pair->wanted.device) + " before it is used."}};
}

}  // namespace devsan::report::why
