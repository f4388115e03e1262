// A driver with two GPUs, one of them in MIG mode with one instance, that answers to CUDA's and NVML's names.
#include <cstring>

extern "C" {

int cuInit(unsigned) {
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Toy 100", static_cast<std::size_t>(size));
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{24} << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 8 : 6;
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(i);
  return 0;
}

int nvmlInit_v2() {
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  std::strncpy(version, "550.54.14", size);
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char handles[2];
  *device = &handles[index];
  return 0;
}
int nvmlDeviceGetUUID(void*, char* uuid, unsigned size) {
  std::strncpy(uuid, "GPU-0001", size);
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = 1;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  *instance = device;
  return index == 0 ? 0 : 6;
}
}
