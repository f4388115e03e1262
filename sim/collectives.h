// Collectives between processes: a c10d backend for simulated devices over a backend for the CPU.
#pragma once

#include <string>

namespace devsan::sim {

// Gives the registered process group `group_name`, which has a backend for the CPU, a backend for CUDA that runs on it,
// and goes by `backend_name`: "nccl" or "gloo".
void wrap_cpu_backend(const std::string& group_name, const std::string& backend_name);

}  // namespace devsan::sim
