// What the NVIDIA driver says, asked in a process of its own: a driver that crashes or hangs takes only that one down.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace devsan::doctor {

struct Gpu {
  std::string name;
  std::string uuid;  // "GPU-…"
  std::uint64_t memory = 0;
  int major = 0;  // compute capability
  int minor = 0;
  bool mig = false;                    // divided into instances
  std::vector<std::string> instances;  // their UUIDs, "MIG-…"

  int capability() const { return 10 * major + minor; }
};

struct DriverAnswer {
  std::string trouble;  // why there was no answer: a signal, a time-out; empty where there was one

  // By CUDA, in the order of this process's CUDA_VISIBLE_DEVICES.
  std::string cuda_path;        // of the libcuda that was loaded; empty where none was
  std::string cuda_load_error;  // dlopen's words
  int init_status = -1;         // of cuInit
  int cuda_version = 0;         // 12040
  std::vector<Gpu> visible;

  // By NVML, all of the machine, in the order of the PCI bus.
  std::string nvml_error;  // empty where it answered
  std::string version;     // "535.104.05"
  std::vector<Gpu> all;

  bool loaded() const { return !cuda_path.empty(); }
  bool works() const { return loaded() && init_status == 0; }
};

struct DriverLibraries {
  std::string cuda = "libcuda.so.1";
  std::string nvml = "libnvidia-ml.so.1";
};

DriverAnswer ask_driver(const DriverLibraries& libraries = {},
                        std::chrono::milliseconds patience = std::chrono::seconds(20));

// "CUDA_ERROR_NO_DEVICE" of cuInit's status 100; "error 42" of one that is not known.
std::string init_error_name(int status);

}  // namespace devsan::doctor
