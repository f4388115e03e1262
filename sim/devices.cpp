#include "sim/devices.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

namespace devsan::sim {
namespace {

constexpr int kInvalidDeviceOrdinal = 101;  // cudaErrorInvalidDevice

Settings g_settings;
thread_local c10::DeviceIndex t_current_device = 0;

// CUDA's reading of the list: it ends at the first entry that names no device, and a device named twice empties it.
int count_visible(std::string_view list, int devices) {
  std::set<int> seen;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string entry(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    char* end = nullptr;
    const long ordinal = std::strtol(entry.c_str(), &end, 10);
    if (end == entry.c_str() || ordinal < 0 || ordinal >= devices) break;
    if (!seen.insert(static_cast<int>(ordinal)).second) return 0;
  }
  return static_cast<int>(seen.size());
}

int count_devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? g_settings.devices : count_visible(visible, g_settings.devices);
}

}  // namespace

void configure(const Settings& settings) {
  g_settings = settings;
}

std::size_t bytes_per_device() noexcept {
  return g_settings.bytes_per_device;
}

c10::DeviceIndex device_count() noexcept {
  static const auto count = static_cast<c10::DeviceIndex>(count_devices());
  return count;
}

c10::DeviceIndex current_device() noexcept {
  return t_current_device;
}

void set_current_device(c10::DeviceIndex index) noexcept {
  t_current_device = index;
}

void check_device(c10::DeviceIndex index) {
  if (index >= 0 && index < device_count()) return;
  throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, kInvalidDeviceOrdinal,
                              "CUDA error: invalid device ordinal\n"
                              "GPU device may be out of range, do you have enough GPUs?\n");
}

c10::Device resolve_device(std::optional<c10::Device> device) {
  const c10::DeviceIndex index = device && device->has_index() ? device->index() : current_device();
  check_device(index);
  return {kSimulatedType, index};
}

}  // namespace devsan::sim
