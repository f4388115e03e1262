// The simulated devices themselves: how many there are, how large each is, and which one a thread has selected.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <optional>

namespace devsan::sim {

inline constexpr c10::DeviceType kSimulatedType = c10::DeviceType::CUDA;
inline constexpr int kMaxDevices = 64;  // as many as PyTorch's own CUDA code allows

struct Settings {
  int devices = 0;
  std::size_t bytes_per_device = 0;
};

// Called once, before anything below.
void configure(const Settings& settings);

std::size_t bytes_per_device() noexcept;

// The devices that the process may see. As with the CUDA driver, CUDA_VISIBLE_DEVICES is read at the first call.
c10::DeviceIndex device_count() noexcept;

c10::DeviceIndex current_device() noexcept;
void set_current_device(c10::DeviceIndex index) noexcept;

// Raises what CUDA raises for a device that is not there.
void check_device(c10::DeviceIndex index);

// The device that a factory's `device` argument means.
c10::Device resolve_device(std::optional<c10::Device> device);

// Selects a device for a scope, on the calling thread.
class CurrentDevice {
 public:
  explicit CurrentDevice(c10::DeviceIndex index) : previous_(current_device()) { set_current_device(index); }
  ~CurrentDevice() { set_current_device(previous_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  c10::DeviceIndex previous_;
};

}  // namespace devsan::sim
