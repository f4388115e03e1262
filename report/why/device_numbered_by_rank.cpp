// `cuda:{rank}`: the rank in the whole run is taken for the number of a GPU of this machine, where others take the
// local rank, or the current device. On the first machine the two are the same.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// Also as an attribute: `mapping.rank`.
template <std::size_t N>
bool has_any(std::string_view statement, const std::array<std::string_view, N>& names) {
  return std::ranges::any_of(names,
                             [&](std::string_view one) { return trace::name_in(statement, one) != statement.npos; });
}

// Of one machine: its own count of processes, or of GPUs.
bool counts_locally(std::string_view statement) {
  constexpr std::array<std::string_view, 7> kLocal = {"local_rank",          "LOCAL_RANK",     "get_local_rank",
                                                      "local_process_index", "current_device", "device_count",
                                                      "get_node_local_rank"};
  return has_any(statement, kLocal) || statement.find('%') != statement.npos;
}

bool counts_all(std::string_view statement) {
  constexpr std::array<std::string_view, 5> kGlobal = {"rank", "global_rank", "get_rank", "RANK", "world_rank"};
  return has_any(statement, kGlobal) && !counts_locally(statement);
}

// The line that numbers the operand's device by the rank in the whole run; none where that is not known.
std::optional<Decision> numbered_by_rank(const Operand& operand, const Finding& finding) {
  auto decided = decision_of(operand, trace::EvidenceKind::device_from, finding);
  const bool numbers = decided && decided->at.statement().find("cuda") != std::string::npos;
  return numbers && counts_all(decided->at.statement()) ? decided : std::nullopt;
}

// In so many words. `.cuda()` may mean the first GPU as well.
bool is_placed_locally(const Operand& operand, const Finding& finding) {
  const auto decided = decision_of(operand, trace::EvidenceKind::device_from, finding);
  if (decided) return counts_locally(decided->at.statement());
  const LineageStep* arrival = arrival_of(operand);
  return arrival != nullptr && counts_locally(arrival->at.statement());
}

}  // namespace

std::optional<Explanation> device_numbered_by_rank(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  for (const Operand* operand : {&pair->odd, &pair->wanted}) {
    const Operand& other = operand == &pair->odd ? pair->wanted : pair->odd;
    const auto decided = numbered_by_rank(*operand, finding);
    if (!decided || !is_placed_locally(other, finding)) continue;
    return Explanation{
        cause_at(decided->at, *operand,
                 mention_first(*operand) + " is on " + operand->device +
                     ", since this line takes the rank in the whole run "
                     "for the number of a GPU. " +
                     mention_first(other) + " is on " + other.device +
                     ", by what counts on this machine alone: on any but the first machine the two differ."),
        Fix{decided->at.file, decided->at.line,
            "Number the device by the local rank (`LOCAL_RANK`, which torchrun sets), or take "
            "`torch.cuda.current_device()`."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
