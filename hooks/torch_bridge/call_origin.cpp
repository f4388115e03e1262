#include "hooks/torch_bridge/call_origin.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"

namespace devsan::hooks {

namespace {

// torch.ops.X.Y(…) is a call in the first of these files, a collective one in the second. Their bindings give up the
// GIL around the operator, take it again afterwards, and hold the Python arguments meanwhile.
constexpr std::array<std::string_view, 2> kModules = {"_ops.py", "distributed/distributed_c10d.py"};

bool is_called_by_binding(const void* thread) noexcept {
  const void* frame = innermost_frame(current_frame(thread));
  if (frame == nullptr || (code_table.marks(frame_code(frame)) & kTorchCode) == 0) return false;
  char buffer[sizeof directories.torch];
  const std::string_view file =
      text_of(field<const void*>(frame_code(frame), code_members.filename), buffer, sizeof buffer);
  return std::ranges::any_of(kModules, [file](std::string_view module) {
    return file.size() == std::strlen(directories.torch) + module.size() && file.ends_with(module);
  });
}

}  // namespace

const void* const no_frame = &no_frame;

bool is_part_of_outer(const ThreadState& state) noexcept {
  if (state.depth == 0 || state.outer.python == nullptr) return false;
  const void* const end = frame_in_word(state.outer.frame);
  const void* frame = current_frame(state.outer.python);
  for (; frame != nullptr && frame != end; frame = frame_previous(frame)) {
    const void* code = frame_code(frame);
    const std::uint32_t marks = code_table.marks(code);
    if ((marks & (kTorchCode | kNoCode)) != 0) continue;
    return is_name(field<const void*>(code, code_members.name), "__torch_dispatch__");
  }
  return frame != nullptr;
}

const void* caller_of(const ThreadState& state, const void* frame, const void* frame_around) noexcept {
  if (state.outer.python == nullptr || frame == frame_around) return nullptr;
  return is_called_by_binding(state.outer.python) ? runtime.python_bindings_begin.load() : nullptr;
}

}  // namespace devsan::hooks
