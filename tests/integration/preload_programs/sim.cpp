// The simulation's face to libdevsan.so: says what it is called with.
#include <cstdio>

#include "preload/hooks_abi.h"

extern "C" bool devsan_sim_attach(const devsan::HostServices* services) {
  std::printf("simulating %d devices\n", services->options.simulated_devices);
  return true;
}

extern "C" void devsan_sim_module_created(void* module) {
  std::printf("got the module: %d\n", module != nullptr);
}
