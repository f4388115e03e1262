#include "hooks/inprocess/events/data_waits.h"

#include <cstdint>
#include <string_view>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/step_times.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "trace/clock.h"

namespace devsan::hooks {

namespace {

// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
constexpr std::string_view kMark = "enumerate(";
constexpr std::string_view kMarkEnd = ".__next__";
constexpr int kFramesOfMark = 8;  // from the operator that takes the mark to the iterator
constexpr int kFramesOfWait = 128;

struct LoaderWait {
  const void* frame;   // of the iterator; null where the thread waits for none
  std::int64_t begin;  // CLOCK_MONOTONIC
};

thread_local constinit LoaderWait loader_wait{};

bool is_mark_of_loader(const void* object) noexcept {
  if (object == nullptr || !is_text(object)) return false;
  char buffer[128];
  const std::string_view text = text_of(object, buffer, sizeof buffer);
  return text.starts_with(kMark) && text.ends_with(kMarkEnd);
}

const void* innermost_of_thread() noexcept {
  const void* const thread = python_thread(thread_state());
  return thread != nullptr ? current_frame(thread) : nullptr;
}

const void* iterator_frame(const void* frame) noexcept {
  for (int k = 0; k < kFramesOfMark && frame != nullptr; ++k, frame = frame_previous(frame)) {
    const void* code = frame_code(frame);
    const bool is_code = code != nullptr && type_of(code) == python.code_type;
    if (is_code && is_name(field<const void*>(code, code_members.name), "__next__")) return frame;
  }
  return nullptr;
}

bool stands_below(const void* frame, const void* wanted, int most) noexcept {
  for (int k = 0; k < most && frame != nullptr; ++k, frame = frame_previous(frame)) {
    if (frame == wanted) return true;
  }
  return false;
}

}  // namespace

void note_text_argument(const void* object) noexcept {
  if (!is_mark_of_loader(object)) return;
  const void* const innermost = innermost_of_thread();
  const void* const iterator = iterator_frame(innermost);
  // A loader that another one reads from is a part of its wait.
  const bool within = loader_wait.frame != nullptr && stands_below(innermost, loader_wait.frame, kFramesOfWait);
  if (iterator == nullptr || within) return;
  loader_wait = {iterator, trace::clock_ns(CLOCK_MONOTONIC)};
}

void note_object_argument() noexcept {
  if (loader_wait.frame == nullptr) return;
  const void* const innermost = innermost_of_thread();
  if (iterator_frame(innermost) != loader_wait.frame) return;
  loader_wait.frame = nullptr;
  note_data_waited(loader_wait.begin);
}

}  // namespace devsan::hooks
