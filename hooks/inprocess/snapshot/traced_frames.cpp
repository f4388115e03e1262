#include "hooks/inprocess/snapshot/traced_frames.h"

#include <ranges>
#include <utility>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/made_frames.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/object_members.h"

namespace devsan::hooks {

namespace {

void fill_variables(std::byte* frame, const TracedFunction& function, const TracedValues& values) {
  const void* variables = member_of(function.translator, "symbolic_locals");
  for (std::ptrdiff_t k = 0; const void* name = code_local_name(function.code, k); ++k) {
    char buffer[256];
    const void* variable = dict_entry(variables, text_of(name, buffer, sizeof buffer));
    const auto offset = frame_layout.locals + k * static_cast<std::ptrdiff_t>(sizeof(void*));
    write_in_frame(frame, offset, static_cast<const void*>(values.object_of(variable)));
  }
}

std::unique_ptr<std::byte[]> frame_of(const TracedFunction& function, const TracedValues& values,
                                      const void* previous) {
  auto frame = std::make_unique<std::byte[]>(size_of_frame(function.code));
  const void* globals = member_of(function.translator, "f_globals");
  write_in_frame(frame.get(), frame_layout.code, function.code);
  write_in_frame(frame.get(), frame_layout.globals, globals);
  write_in_frame(frame.get(), frame_layout.previous, previous);
  stand_at(frame.get(), function.code, function.instruction);
  fill_variables(frame.get(), function, values);
  return frame;
}

}  // namespace

TracedFrames::TracedFrames(const TracedCall& call, const TracedValues& values) {
  const void* previous = call.caller;
  for (const TracedFunction& function : call.functions | std::views::reverse) {
    frames_.push_back(frame_of(function, values, previous));
    previous = innermost();
  }
}

}  // namespace devsan::hooks
