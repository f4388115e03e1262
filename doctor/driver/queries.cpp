#include "doctor/driver/queries.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

namespace devsan::doctor {
namespace {

constexpr int kMaxGpus = 64;
constexpr int kMaxInstances = 16;
constexpr int kMajorAttribute = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kMinorAttribute = 76;

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

std::string path_of(void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// CUDA tells a UUID as bytes; NVML and CUDA_VISIBLE_DEVICES have it as text.
std::string uuid_text(std::span<const unsigned char, 16> bytes) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", bytes[i]);
    text += digits.data();
  }
  return text;
}

Gpu visible_gpu(void* library, int device) {
  Gpu gpu;
  std::array<char, 256> name{};
  if (auto* get = symbol<int(char*, int, int)>(library, "cuDeviceGetName")) get(name.data(), 255, device);
  gpu.name = name.data();
  std::size_t memory = 0;
  if (auto* get = symbol<int(std::size_t*, int)>(library, "cuDeviceTotalMem_v2")) get(&memory, device);
  gpu.memory = memory;
  if (auto* get = symbol<int(int*, int, int)>(library, "cuDeviceGetAttribute")) {
    get(&gpu.major, kMajorAttribute, device);
    get(&gpu.minor, kMinorAttribute, device);
  }
  std::array<unsigned char, 16> uuid{};
  auto* get_uuid = symbol<int(unsigned char*, int)>(library, "cuDeviceGetUuid_v2");
  if (get_uuid == nullptr) get_uuid = symbol<int(unsigned char*, int)>(library, "cuDeviceGetUuid");
  if (get_uuid != nullptr && get_uuid(uuid.data(), device) == 0) gpu.uuid = uuid_text(uuid);
  return gpu;
}

struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

std::string nvml_uuid(void* library, void* device) {
  std::array<char, 128> text{};
  auto* get = symbol<int(void*, char*, unsigned)>(library, "nvmlDeviceGetUUID");
  return get != nullptr && get(device, text.data(), text.size() - 1) == 0 ? text.data() : "";
}

void read_instances(void* library, void* device, Gpu& gpu) {
  auto* mode = symbol<int(void*, unsigned*, unsigned*)>(library, "nvmlDeviceGetMigMode");
  unsigned current = 0;
  unsigned pending = 0;
  gpu.mig = mode != nullptr && mode(device, &current, &pending) == 0 && current == 1;
  auto* instance_at = symbol<int(void*, unsigned, void**)>(library, "nvmlDeviceGetMigDeviceHandleByIndex");
  if (!gpu.mig || instance_at == nullptr) return;
  for (unsigned i = 0; i < kMaxInstances; ++i) {
    void* instance = nullptr;
    if (instance_at(device, i, &instance) == 0) gpu.instances.push_back(nvml_uuid(library, instance));
  }
}

Gpu machine_gpu(void* library, void* device) {
  Gpu gpu;
  gpu.uuid = nvml_uuid(library, device);
  std::array<char, 128> name{};
  if (auto* get = symbol<int(void*, char*, unsigned)>(library, "nvmlDeviceGetName")) get(device, name.data(), 127);
  gpu.name = name.data();
  NvmlMemory memory{};
  auto* get_memory = symbol<int(void*, NvmlMemory*)>(library, "nvmlDeviceGetMemoryInfo");
  if (get_memory != nullptr && get_memory(device, &memory) == 0) gpu.memory = memory.total;
  if (auto* get = symbol<int(void*, int*, int*)>(library, "nvmlDeviceGetCudaComputeCapability")) {
    get(device, &gpu.major, &gpu.minor);
  }
  read_instances(library, device, gpu);
  return gpu;
}

}  // namespace

void ask_cuda(const std::string& name, DriverAnswer& answer) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    answer.cuda_load_error = dlerror();
    return;
  }
  auto* init = symbol<int(unsigned)>(library, "cuInit");
  if (init == nullptr) {
    answer.cuda_load_error = name + " has no cuInit";
    return;
  }
  answer.cuda_path = path_of(reinterpret_cast<void*>(init));
  answer.init_status = init(0);
  if (auto* version = symbol<int(int*)>(library, "cuDriverGetVersion")) version(&answer.cuda_version);
  auto* count = symbol<int(int*)>(library, "cuDeviceGetCount");
  int devices = 0;
  if (answer.init_status != 0 || count == nullptr || count(&devices) != 0) return;
  for (int device = 0; device < std::min(devices, kMaxGpus); ++device) {
    answer.visible.push_back(visible_gpu(library, device));
  }
}

void ask_nvml(const std::string& name, DriverAnswer& answer) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    answer.nvml_error = dlerror();
    return;
  }
  auto* init = symbol<int()>(library, "nvmlInit_v2");
  auto* count = symbol<int(unsigned*)>(library, "nvmlDeviceGetCount_v2");
  auto* device_at = symbol<int(unsigned, void**)>(library, "nvmlDeviceGetHandleByIndex_v2");
  if (init == nullptr || count == nullptr || device_at == nullptr) {
    answer.nvml_error = name + " lacks functions";
    return;
  }
  if (const int status = init(); status != 0) {
    // 18 is NVML_ERROR_LIB_RM_VERSION_MISMATCH.
    answer.nvml_error = status == 18 ? "driver/library version mismatch" : "NVML error " + std::to_string(status);
    return;
  }
  std::array<char, 96> version{};
  if (auto* get = symbol<int(char*, unsigned)>(library, "nvmlSystemGetDriverVersion")) get(version.data(), 95);
  answer.version = version.data();
  unsigned devices = 0;
  count(&devices);
  for (unsigned i = 0; i < std::min<unsigned>(devices, kMaxGpus); ++i) {
    void* device = nullptr;
    if (device_at(i, &device) == 0) answer.all.push_back(machine_gpu(library, device));
  }
}

}  // namespace devsan::doctor
