// Hooks for the toy torch: the wrapper adds 1000, and a forked child opens its own trace at its first operator.
#include <cstdio>

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

}  // namespace

extern "C" const devsan::HookTable* devsan_hooks_attach(const devsan::HostServices* services) {
  g_services = services;
  if (torch_ready == 0 || torch_neighbour_initialising != 0)
    services->say("the hooks were loaded before torch was initialised");
#ifdef REFUSE
  services->say("these hooks serve nobody");
  return nullptr;
#endif
  return &g_table;
}
