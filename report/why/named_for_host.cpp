// `seq_lens_cpu`, `offsets_on_host`: what the program calls so is meant to be on the host. Where it is on an
// accelerator, it is the odd one, whatever it meets.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/operands.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"

namespace devsan::report::why {
namespace {

// Whether one of the words of a name, which `_` and `.` part, is "cpu" or "host".
bool says_host(std::string_view name) {
  constexpr std::array<std::string_view, 2> kWords = {"cpu", "host"};
  const auto stands = [name](std::string_view word) {
    for (std::size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
      const std::size_t behind = at + word.size();
      const bool begins = at == 0 || name[at - 1] == '_' || name[at - 1] == '.';
      // `host_ids` may well be those of a machine, unless there are `ids` beside them.
      const bool last = behind == name.size() || name[behind] == '[';
      const bool ends = last || (word == "cpu" && name[behind] == '_');
      if (begins && ends) return true;
    }
    return false;
  };
  return std::ranges::any_of(kWords, stands);
}

}  // namespace

std::optional<Explanation> named_for_host(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  const Operand& named = pair->wanted;
  const bool says = says_host(named.name) || evidence_of(named, trace::EvidenceKind::device_twin) != nullptr;
  if (!says || says_host(pair->odd.name) || is_weight(named)) return std::nullopt;
  const LineageStep* arrival = arrival_of(named);
  if (arrival == nullptr || !is_changeable(arrival->at, finding)) return std::nullopt;
  const bool moved = arrival->how == trace::How::moved;
  const std::string edit =
      moved || names_device(arrival->at) ? "" : with_argument(call_at(arrival->at), "device='cpu'");
  return Explanation{cause_at(arrival->at, named,
                              mention_first(named) + " says by its name that it is on the host, and " +
                                  (moved ? "this line puts it on " : "begins in this line on ") + named.device +
                                  ". What it meets is on the CPU."),
                     Fix{arrival->at.file, arrival->at.line,
                         moved          ? "Leave it on the CPU in this line."
                         : edit.empty() ? "Make it on the CPU in this line."
                                        : "Make it on the CPU: `" + edit + "`."}};
}

}  // namespace devsan::report::why
