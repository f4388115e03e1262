#include "hooks/inprocess/provenance/callers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <ranges>
#include <span>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

namespace {

// The calls of the program and its libraries, from the one of the user's frame outwards. False where a code object on
// the way is not in the code table, which has no room: then nobody tells when it dies.
bool collect(const void* frame, std::size_t walked, std::array<trace::SiteId, trace::kMaxCalls>& sites,
             std::size_t& count) noexcept {
  bool inside = true;
  for (; walked > 0 && count < sites.size(); --walked, frame = frame_previous(frame)) {
    const std::uint32_t marks = code_table.marks(frame_code(frame));
    if ((marks & kNoCode) != 0) continue;
    if (code_table.number(frame_code(frame)) == 0) return false;
    if ((marks & kTorchCode) != 0) continue;
    if (!inside) sites[count++] = site_of_frame(frame);
    inside = false;
  }
  return true;
}

std::uint32_t write_down(std::span<const trace::SiteId> innermost_first) noexcept {
  trace::LineageId call = trace::LineageId::none;
  for (const trace::SiteId site : std::views::reverse(innermost_first)) {
    if (site == trace::SiteId::none) return 0;
    call = runtime.recorder->add_lineage(
        {call, site, trace::OperatorId::none, trace::DeviceSlot::none, trace::How::called, 0, 0});
  }
  return static_cast<std::uint32_t>(call);
}

}  // namespace

std::uint32_t callers(const ThreadState& state) noexcept {
  if (state.caches == nullptr || state.outer.python == nullptr) return 0;
  const void* const frame = current_frame(state.outer.python);
  std::array<std::uintptr_t, CallersMemo::kLongest> instructions;
  std::uintptr_t mixed = 0;
  std::size_t walked = 0;
  for (const void* at = frame; at != nullptr && walked < instructions.size(); at = frame_previous(at)) {
    const std::uintptr_t instruction = instruction_address(at);
    instructions[walked++] = instruction;
    mixed = mixed * 31 + instruction;
  }
  CallersMemo& memo = state.caches->callers(mixed);
  const std::uint32_t generation = code_table.generation();
  if (memo.generation == generation && memo.walked == walked &&
      std::equal(instructions.begin(), instructions.begin() + walked, memo.instructions.begin())) {
    return memo.calls;
  }
  std::array<trace::SiteId, trace::kMaxCalls> sites;
  std::size_t count = 0;
  if (!collect(frame, walked, sites, count)) return 0;
  memo = {instructions, generation, static_cast<std::uint32_t>(walked), write_down({sites.data(), count})};
  return memo.calls;
}

}  // namespace devsan::hooks
