// devsan_hooks_attach: what libdevsan.so calls when the hooks are loaded.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "hooks/inprocess/bridge/memory_samples.h"
#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/collective_log.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/inprocess/interpreter/python_start.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/torch_bridge/boxed_call.h"
#include "hooks/torch_bridge/collectives.h"
#include "hooks/torch_bridge/group_calls.h"
#include "hooks/torch_bridge/host_access.h"
#include "hooks/torch_bridge/layout_check.h"
#include "hooks/torch_bridge/meeting.h"
#include "hooks/torch_bridge/races.h"
#include "hooks/torch_bridge/storage_release.h"
#include "hooks/torch_bridge/thread_start.h"
#include "trace/fixed_text.h"

namespace devsan::hooks {

namespace {

const char* device_type_name(c10::DeviceType type) noexcept {
  static std::string names[static_cast<std::size_t>(c10::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES)];
  try {
    std::string& name = names[static_cast<std::size_t>(type)];
    name = c10::DeviceTypeName(type, true);
    return name.c_str();
  } catch (...) {
    return "unknown";
  }
}

// PyTorch's allocators ask about events inside operators, and a process group's watchdog does on a thread of its own:
// the program is none the wiser, and what they hear depends on time.
bool is_asked_by_program() noexcept {
  const ThreadState& state = thread_state();
  return state.depth == 0 && (!runtime.has_python || python_thread(state) != nullptr);
}

// Streams that are made before the first operator are to be known when it runs.
void begin_recording() noexcept {
  ThreadState& state = thread_state();
  const trace::Recorder& recorder = *runtime.recorder;
  if (!state.busy && !recorder.active() && !recorder.gave_up()) start_thread(state);
}

constexpr DeviceWatch kDeviceWatch = {
    &begin_recording,
    [](const void* event, int device, std::int64_t stream) {
      collective_records_event(event, stream);
      pending_copies.record_event(event, {device, stream});
    },
    [](const void* event) { pending_copies.forget_event(event); },
    [](int device, std::int64_t stream) {
      pending_copies.forget_stream({device, stream});
    },
    [](int device, std::int64_t stream, const void* event) {
      pending_copies.wait_event({device, stream}, event);
    },
    [](const void* event, bool waited) {
      collective_log.event_completed(event);
      if (waited || is_asked_by_program()) pending_copies.host_saw_event(event);
    },
    [](int device, std::int64_t stream, bool waited) {
      if (waited || is_asked_by_program()) pending_copies.host_saw_stream({device, stream});
    },
    [](int device) { pending_copies.host_saw_device(device); },
    [](const char* message) { note_error(message); },
    &note_host_access,
    &note_host_touch,
    [](const void* work, bool failed) { collective_log.work_ended(work, failed); },
};

}  // namespace

DEVSAN_OFTEN_READ constinit Runtime runtime{};
constinit Directories directories{};

trace::DeviceSlot intern_device(DeviceKey key) noexcept {
  const c10::Device device = device_of_key(key);
  char name[64];
  const char* type = device_type_name(device.type());
  const int length = device.has_index() && !device.is_cpu() && !device.is_meta()
                         ? std::snprintf(name, sizeof name, "%s:%d", type, int{device.index()})
                         : std::snprintf(name, sizeof name, "%s", type);
  const trace::DeviceSlot slot = runtime.recorder->intern_device({name, static_cast<std::size_t>(length)});
  large_page->device_slots[key & 0xffff].store(slot, std::memory_order_relaxed);
  return slot;
}

}  // namespace devsan::hooks

extern "C" __attribute__((visibility("default"))) const devsan::HookTable* devsan_hooks_attach(
    const devsan::HostServices* host) {
  using namespace devsan::hooks;
  if (host->abi != devsan::kHooksAbi) return nullptr;
  if (const char* what = wrongly_read_of_tensors()) {
    devsan::FixedText<256> message;
    message.append("these hooks do not fit this torch: ").append(what);
    host->say(message.c_str());
    return nullptr;
  }
  if (!LargePage::make()) {
    host->say("out of memory, so nothing is recorded");
    return nullptr;
  }
  runtime.host = host;
  runtime.recorder = host->recorder;
  runtime.epoch_page = host->recorder->epoch_page();
  if (::getcwd(directories.start, sizeof directories.start) == nullptr) directories.start[0] = 0;
  look_for_torch();
  if (!register_operators()) {
    host->say("the trace file is too small for this torch's operators, so nothing is recorded (raise trace_size)");
    return nullptr;
  }
  runtime.has_origins = watch_storage_release();
  if (!runtime.has_origins) {
    host->recorder->add_notice("cannot track the storages of this torch: findings have no histories");
  }
  look_for_python();
  start_boxed_demand();
  watch_memory_over_forks();
  if (host->options.guard) prepare_for_host_accesses();
  pending_copies.close_pages_by(host->pinned_pages->load(std::memory_order_acquire));
  host->device_watch->store(&kDeviceWatch, std::memory_order_release);
  return hook_table(group_functions());
}
