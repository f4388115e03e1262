/* A CUDA runtime: a shared library, or linked into the program. Asks the driver for everything, as NVIDIA's does. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stdlib.h>

static int (*get_entry)(const char*, void**, int, uint64_t, int*);

static void* entry(const char* name) {
  if (get_entry == NULL) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*first)(const char*, void**, int, uint64_t, int*) = dlsym(driver, "cuGetProcAddress_v2");
    first("cuGetProcAddress", (void**)&get_entry, 12000, 0, NULL);
  }
  void* function = NULL;
  if (get_entry(name, &function, 12040, 0, NULL) != SUCCESS) abort();
  return function;
}

static int entered; /* of this runtime, when there are two */
int runtime_entered(void) {
  return entered;
}

int cudaMalloc(void** out, size_t bytes) {
  ++entered;
  return ((int (*)(void**, size_t))entry("cuMemAlloc"))(out, bytes);
}
int cudaFree(void* address) {
  return ((int (*)(void*))entry("cuMemFree"))(address);
}
int cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  return ((int (*)(void**, size_t, unsigned))entry("cuMemHostAlloc"))(out, bytes, flags);
}
int cudaFreeHost(void* address) {
  return ((int (*)(void*))entry("cuMemFreeHost"))(address);
}
int cudaMemcpy(void* target, const void* source, size_t bytes, int kind) {
  if (kind == 1) return ((int (*)(void*, const void*, size_t))entry("cuMemcpyHtoD"))(target, source, bytes);
  return ((int (*)(void*, const void*, size_t))entry("cuMemcpyDtoH"))(target, source, bytes);
}
int cudaDeviceSynchronize(void) {
  return ((int (*)(void))entry("cuCtxSynchronize"))();
}

void use_device(int device) { /* cudaSetDevice, as far as it is needed here */
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  Context context = NULL;
  ((int (*)(Context*, int))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, device);
  ((int (*)(Context))dlsym(driver, "cuCtxSetCurrent"))(context);
}
