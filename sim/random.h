// Random numbers on simulated devices: generators of device type CUDA whose state is CUDA's, a seed and an offset.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

namespace devsan::sim {

const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator make_generator(c10::DeviceIndex device);

// While set, make_generator on this thread gives the default generator: torch offers no other way to make the Python
// object of an existing generator.
void next_generator_is_default(bool is_default);

// The CPU generator that one operator draws from in place of `generator`, an operator's own argument or the default
// generator of `device`. Raises PyTorch's error where that generator is no CUDA generator.
at::Generator host_generator(const std::optional<at::Generator>& generator, c10::DeviceIndex device);

// For operators that have no generator argument and draw from the CPU's default generator: lets them draw from the
// device's default generator, and leaves the CPU's as it was.
class HostDefaultGenerator {
 public:
  explicit HostDefaultGenerator(c10::DeviceIndex device);
  ~HostDefaultGenerator();
  HostDefaultGenerator(const HostDefaultGenerator&) = delete;
  HostDefaultGenerator& operator=(const HostDefaultGenerator&) = delete;

 private:
  at::Generator saved_;
};

}  // namespace devsan::sim
