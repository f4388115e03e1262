// The check of the interpreter's frame layout by itself, without torch: for test_frame_check.py.
#include "hooks/inprocess/interpreter/frame_check.h"

#include "hooks/inprocess/interpreter/python_frames.h"

using devsan::hooks::frame_layout;

namespace {

std::ptrdiff_t* const kMembers[] = {
    &frame_layout.current,           &frame_layout.instruction, &frame_layout.code,
    &frame_layout.previous,          &frame_layout.exception,   &frame_layout.exception_value,
    &frame_layout.exception_previous};

}  // namespace

extern "C" int find() {
  const char* reason = nullptr;
  return devsan::hooks::find_python(&reason) && devsan::hooks::choose_frame_layout() ? 1 : 0;
}

// The verdict with one member of the layout moved.
extern "C" int check(int member, long by) {
  devsan::hooks::choose_frame_layout();
  *kMembers[member] += by;
  return static_cast<int>(devsan::hooks::check_frame_layout());
}
