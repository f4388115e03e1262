#include "hooks/inprocess/interpreter/made_frames.h"

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

std::size_t size_of_frame(const void* code) noexcept {
  std::ptrdiff_t slots = 0;
  while (code_local_name(code, slots) != nullptr) ++slots;
  return static_cast<std::size_t>(frame_layout.locals) + static_cast<std::size_t>(slots) * sizeof(void*);
}

void stand_at(std::byte* frame, const void* code, int instruction) noexcept {
  if (frame_layout.instruction_index) {
    write_in_frame(frame, frame_layout.instruction, instruction / 2);
    return;
  }
  const char* begin = static_cast<const char*>(code) + code_members.instructions;
  write_in_frame(frame, frame_layout.instruction, begin + instruction);
}

}  // namespace devsan::hooks
