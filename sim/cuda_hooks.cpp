#include "sim/cuda_hooks.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <memory>

#include "sim/allocator.h"
#include "sim/device_guard.h"
#include "sim/devices.h"
#include "sim/random.h"

namespace devsan::sim {
namespace {

constexpr long kCudaVersion = 13000;  // of the runtime that torch.version.cuda names

// No cuDNN, cuBLASLt, MAGMA or NVRTC: with them ATen would choose operators that exist only as CUDA kernels.
class SimulatedHooks final : public at::CUDAHooksInterface {
 public:
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    check_device(device);
    return true;
  }
  long versionCUDART() const override { return kCudaVersion; }
  std::string showConfig() const override { return "  - CUDA simulated by devsan\n"; }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  int getNumGPUs() const override { return device_count(); }
  c10::DeviceIndex current_device() const override { return sim::current_device(); }
  c10::DeviceIndex getCurrentDevice() const override { return sim::current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    check_device(device);
    set_current_device(device);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    if (device < 0) return -1;
    const c10::DeviceIndex previous = sim::current_device();
    setCurrentDevice(device);
    return previous;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  void deviceSynchronize(c10::DeviceIndex device) const override { tell_host_saw_device(device); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return make_generator(device); }

  c10::Allocator* getCUDADeviceAllocator() const override { return device_allocator(); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool isPinnedPtr(const void* pointer) const override { return is_pinned(pointer); }
  c10::Device getDeviceFromPtr(void* pointer) const override {
    const std::optional<c10::DeviceIndex> device = device_of_pointer(pointer);
    TORCH_CHECK(device.has_value(),
                "The specified pointer resides on host memory and is not registered with any "
                "CUDA device.");
    return {kSimulatedType, *device};
  }
};

}  // namespace

void register_cuda_hooks() {
  const auto make = [](at::CUDAHooksArgs) -> std::unique_ptr<at::CUDAHooksInterface> {
    return std::make_unique<SimulatedHooks>();
  };
  at::CUDAHooksRegistry()->Register("CUDAHooks", make, c10::REGISTRY_PREFERRED);
}

}  // namespace devsan::sim
