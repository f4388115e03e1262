// `with on_device(vae): x = prepare(x)`, and then `vae.encode(x)`: a `with` statement brings weights over for its block
// and takes them back at its end, and what needs them stands behind that.
#include <algorithm>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// One function that yields in between, or two methods of one class: `__enter__` and `__exit__`.
bool of_one_manager(const Frame& one, const Frame& other) {
  const bool methods = one.function.find('.') != std::string::npos && other.function.find('.') != std::string::npos;
  return same_function(one, other) || (methods && class_of(one) == class_of(other));
}

// The `with` statement that had the value brought to a device and taken away from there; null where none did.
const Frame* block_around(const Operand& operand, std::string_view device) {
  const LineageStep* away = newest_move_of(operand);
  if (away == nullptr || away->calls.empty()) return nullptr;
  const LineageStep* brought = move_before(operand, *away);
  if (brought == nullptr || brought->device != device || brought->calls.empty()) return nullptr;
  const Frame& block = away->calls.front();
  const bool one_block = same_line(block, brought->calls.front()) && of_one_manager(away->at, brought->at);
  return one_block && statement_of(block.statement()).starts_with("with ") ? &block : nullptr;
}

}  // namespace

std::optional<Explanation> used_behind_block(const Finding& finding) {
  const auto pair = pair_of(finding);
  const Frame* block = pair ? block_around(pair->odd, pair->wanted.device) : nullptr;
  if (block == nullptr) return std::nullopt;
  const auto used = std::ranges::find_if(finding.stack, [&](const Frame& frame) {
    return same_function(frame, *block) && frame.line > block->line && is_changeable(frame, finding);
  });
  if (used == finding.stack.end()) return std::nullopt;
  return Explanation{
      cause_at(*used, pair->odd,
               "The `with` statement in " + short_place(*block) + " brings " + mention(pair->odd) + " to " +
                   spoken_device(pair->wanted.device) + " for its block, and takes it back to " +
                   spoken_device(pair->odd.device) + " at the end. This line uses it behind that."),
      Fix{used->file, used->line, "Do this inside of the block."}};
}

}  // namespace devsan::report::why
