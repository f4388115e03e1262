// The entry points of libdevsan_sim.so.
#include <c10/util/Exception.h>

#include <exception>
#include <string>

#include "preload/hooks_abi.h"
#include "sim/allocator.h"
#include "sim/attention.h"
#include "sim/attention_choice.h"
#include "sim/batch_norm.h"
#include "sim/convolution.h"
#include "sim/cuda_build.h"
#include "sim/cuda_hooks.h"
#include "sim/device_guard.h"
#include "sim/devices.h"
#include "sim/fallback.h"
#include "sim/guarded_pages.h"
#include "sim/host_faults.h"
#include "sim/kernel_presence.h"
#include "sim/kernel_shapes.h"
#include "sim/late_copies.h"
#include "sim/pinned_pages.h"
#include "sim/python_module.h"
#include "sim/recurrent_cells.h"
#include "sim/reducer_timer.h"
#include "sim/synchronized_norm.h"
#include "sim/views.h"
#include "sim/wide_products.h"
#include "sim/wider_dtypes.h"

namespace devsan::sim {
namespace {

// PyTorch warns of kernels that take the place of others, which is what a torch with CUDA needs.
class Silence final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

void guard_pages(const HostServices& host) {
  const std::size_t bytes = host.options.simulated_memory * static_cast<std::size_t>(host.options.simulated_devices);
  if (guard_device_pages(bytes, host.say)) {
    watch_host_faults(host.device_watch);
  } else {
    host.say("cannot reserve address space: device pages are not guarded");
  }
}

bool attach(const HostServices& host) {
  const int devices = host.options.simulated_devices;
  if (devices < 1 || devices > kMaxDevices) {
    host.say(("cannot simulate " + std::to_string(devices) + " CUDA devices: from 1 to " + std::to_string(kMaxDevices) +
              " are possible")
                 .c_str());
    return false;
  }
  configure({devices, host.options.simulated_memory});
  if (host.options.late_copies) make_copies_late();
  if (host.options.guard) guard_pages(host);
  // A late copy is done while nobody waits for it: the simulation itself would come to closed pages.
  if (!host.options.late_copies) offer_pinned_pages(host);
  locate_python_files(reinterpret_cast<const void*>(host.say));
  register_allocator();
  count_pinned_in(host.pinned_bytes);
  register_device_guard(host.device_watch);
  register_cuda_hooks();
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard silenced(&silence);
  cover_cuda_kernels();
  register_fallback();
  register_kernel_presence();
  register_kernel_shapes();
  register_views();
  register_convolution();
  register_batch_norm();
  register_recurrent_cells();
  register_synchronized_norm();
  register_attention();
  register_attention_choice();
  register_wide_products();
  register_wider_dtypes();
  register_reducer_timer();
  return true;
}

}  // namespace
}  // namespace devsan::sim

extern "C" __attribute__((visibility("default"))) bool devsan_sim_attach(const devsan::HostServices* host) {
  if (host == nullptr || host->abi != devsan::kHooksAbi) return false;
  try {
    return devsan::sim::attach(*host);
  } catch (const std::exception& error) {
    host->say((std::string("cannot simulate CUDA devices: ") + error.what()).c_str());
    return false;
  }
}

extern "C" __attribute__((visibility("default"))) void devsan_sim_module_created(void* module) {
  devsan::sim::extend_module(module);
}
