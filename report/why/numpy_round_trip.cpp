// NumPy's arrays lie in the host's memory, and so does a tensor that is made from one, wherever the numbers had been
// before.
#include <algorithm>
#include <array>

#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

constexpr std::array<std::string_view, 6> kFromHostMemory = {"from_numpy(",  "as_tensor(", "frombuffer(",
                                                             "from_dlpack(", "asarray(",   "from_blob("};

bool is_from_host_memory(const LineageStep& step) {
  const std::string call = call_at(step.at);
  return std::ranges::any_of(kFromHostMemory, [&](std::string_view name) {
    const auto at = call.find(name);
    return at != call.npos && (at == 0 || call[at - 1] == '.');
  });
}

// The other one is there because of the default device: which of the two was meant shows nowhere.
bool follows_default_device(const Operand& wanted) {
  return made_of_no_device(wanted) != nullptr && on_accelerator(wanted) && !is_weight(wanted);
}

// `jac = rig.sensitivities(theta.cpu().numpy())`: the line brings to the host what it gives, and not back what it gets.
std::optional<Explanation> computed_on_host(const LineageStep& arrival, const Pair& pair, const Finding& finding) {
  if (arrival.calls.empty() || !is_changeable(arrival.calls.front(), finding)) return std::nullopt;
  const Frame& call = arrival.calls.front();
  const std::string edit = assigned_after_move(call, device_at(call, pair.wanted, finding));
  const bool brings = call.statement().find(".numpy()") != std::string::npos;
  if (!brings || edit.empty() || class_of(call) == class_of(arrival.at)) return std::nullopt;
  return Explanation{cause_at(call, pair.odd,
                              "This line brings what it gives to the host, and takes " + mention(pair.odd) +
                                  " from there as " + short_place(arrival.at) + " has made it. What it meets is on " +
                                  spoken_device(pair.wanted.device) + "."),
                     Fix{call.file, call.line, "Bring the result back: `" + edit + "`."}};
}

}  // namespace

std::optional<Explanation> numpy_round_trip(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu()) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  if (arrival == nullptr || arrival->how != trace::How::created || !is_changeable(arrival->at, finding)) {
    return std::nullopt;
  }
  if (!is_from_host_memory(*arrival) || names_device(arrival->at)) return std::nullopt;
  // `torch.from_numpy(tree).to(where)`, where a call leaves `where` at its default: that is another mistake.
  const auto decided = decision_of(pair->odd, trace::EvidenceKind::device_from, finding);
  if (decided && !decided->standard.empty()) return std::nullopt;
  if (auto given_back = computed_on_host(*arrival, *pair, finding)) return given_back;
  const std::string device = device_at(arrival->at, pair->wanted, finding);
  Fix fix{arrival->at.file, arrival->at.line,
          "Move it to " + pair->wanted.device + " right here: `" + call_at(arrival->at) + ".to(" + device + ")`."};
  const Evidence* set = place_of(pair->wanted, trace::EvidenceKind::default_device_at, finding);
  if (set == nullptr) set = place_of(pair->wanted, trace::EvidenceKind::default_device_block_at, finding);
  const bool meant = set != nullptr && (is_beginning(set->at) || same_function(set->at, arrival->at));
  if (meant && follows_default_device(pair->wanted)) {
    return Explanation{cause_at(arrival->at, pair->odd,
                                mention_first(pair->odd) +
                                    " begins in this line as a tensor over memory of the host. The default device, " +
                                    pair->wanted.device + " as " + short_place(set->at) +
                                    " says, is for factories alone: nothing takes an array there."),
                       std::move(fix)};
  }
  if (follows_default_device(pair->wanted)) {
    const Frame& other = arrival_of(pair->wanted)->at;
    fix.text.back() = ';';
    fix.text += " or, if it belongs on the CPU, make " + mention(pair->wanted) + " there in " + short_place(other) +
                ": it is on the default device because no other is given.";
    return Explanation{std::nullopt, std::move(fix)};
  }
  RootCause cause = cause_at(arrival->at, pair->odd,
                             mention_first(pair->odd) + " begins in this line as a tensor over memory of the host.");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why
