// Hooks for the toy torch: the wrapper adds 1000, and a forked child opens its own trace at its first operator.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "preload/hooks_abi.h"

extern "C" {
int torch_op(int x);
extern int torch_ready;
extern int torch_neighbour_initialising;
extern thread_local devsan::ThreadBlock devsan_thread_block __attribute__((tls_model("initial-exec")));
}

namespace {

const devsan::HostServices* g_services = nullptr;

int wrapped_op(int x) {
  devsan::trace::Recorder& recorder = *g_services->recorder;
  if (!recorder.active() && !recorder.gave_up()) recorder.reopen_in_child();
  devsan_thread_block.epoch = recorder.epoch_page()->epoch.load();
  return torch_op(x) + 1000;
}

const devsan::Replacement g_replacements[] = {
    {reinterpret_cast<void*>(&torch_op), reinterpret_cast<void*>(&wrapped_op)}};
const devsan::HookTable g_table = {devsan::kHooksAbi, 1, g_replacements, nullptr};

// Appends a line to the file TOLD_FILE for each call of the device watch: streams, events, waits.
template <class... Arguments>
void write_told(const char* format, Arguments... arguments) {
  FILE* file = std::fopen(std::getenv("TOLD_FILE"), "a");
  if (file == nullptr) return;
  std::fprintf(file, format, arguments...);
  std::fclose(file);
}

const devsan::DeviceWatch g_watch = {
    [] {},
    [](const void* event, int device, std::int64_t stream) {
      write_told("recorded %p cuda:%d %" PRIx64 "\n", event, device, stream);
    },
    [](const void* event) { write_told("destroyed %p\n", event); },
    [](int device, std::int64_t stream) { write_told("stream-destroyed cuda:%d %" PRIx64 "\n", device, stream); },
    [](int device, std::int64_t stream, const void* event) {
      write_told("waits-for cuda:%d %" PRIx64 " %p\n", device, stream, event);
    },
    [](const void* event, bool waited) { write_told("%s %p\n", waited ? "waited" : "asked", event); },
    [](int device, std::int64_t stream, bool waited) {
      write_told("%s cuda:%d %" PRIx64 "\n", waited ? "waited" : "asked", device, stream);
    },
    [](int device) { write_told("waited cuda:%d\n", device); },
    [](const char*) {},
    [](const devsan::HostAccess&) {},
    [](const void*, bool) {},
};

}  // namespace

extern "C" const devsan::HookTable* devsan_hooks_attach(const devsan::HostServices* services) {
  g_services = services;
  if (torch_ready == 0 || torch_neighbour_initialising != 0)
    services->say("the hooks were loaded before torch was initialised");
#ifdef REFUSE
  services->say("these hooks serve nobody");
  return nullptr;
#endif
  if (std::getenv("TOLD_FILE") != nullptr) services->device_watch->store(&g_watch);
  return &g_table;
}
