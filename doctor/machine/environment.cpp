#include "doctor/machine/environment.h"

#include <array>
#include <cstdlib>

namespace devsan::doctor {

Environment read_environment() {
  constexpr std::array kNames = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME",
                                 "NCCL_P2P_DISABLE",     "NCCL_SHM_DISABLE",  "NCCL_IB_DISABLE"};
  std::map<std::string, std::string> values;
  for (const char* name : kNames) {
    if (const char* value = std::getenv(name)) values[name] = value;
  }
  return Environment::of(std::move(values));
}

}  // namespace devsan::doctor
