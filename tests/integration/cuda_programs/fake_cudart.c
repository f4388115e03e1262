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
#define DRIVER(name, parameters) ((int(*) parameters)entry(name))

static int entered; /* of this runtime, when there are two */
int runtime_entered(void) {
  return entered;
}

int cudaMalloc(void** out, size_t bytes) {
  ++entered;
  return DRIVER("cuMemAlloc", (void**, size_t))(out, bytes);
}
int cudaFree(void* address) {
  return DRIVER("cuMemFree", (void*))(address);
}
int cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  return DRIVER("cuMemHostAlloc", (void**, size_t, unsigned))(out, bytes, flags);
}
int cudaFreeHost(void* address) {
  return DRIVER("cuMemFreeHost", (void*))(address);
}
int cudaMemcpy(void* target, const void* source, size_t bytes, int kind) {
  if (kind == 1) return DRIVER("cuMemcpyHtoD", (void*, const void*, size_t))(target, source, bytes);
  return DRIVER("cuMemcpyDtoH", (void*, const void*, size_t))(target, source, bytes);
}
int cudaMemcpyAsync(void* target, const void* source, size_t bytes, int kind, Stream stream) {
  const char* const name = kind == 1 ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoHAsync";
  return DRIVER(name, (void*, const void*, size_t, Stream))(target, source, bytes, stream);
}
int cudaDeviceSynchronize(void) {
  return DRIVER("cuCtxSynchronize", (void))();
}
int cudaStreamCreateWithPriority(Stream* out, unsigned flags, int priority) {
  return DRIVER("cuStreamCreate", (Stream*, unsigned))(out, flags);
}
int cudaStreamSynchronize(Stream stream) {
  return DRIVER("cuStreamSynchronize", (Stream))(stream);
}
int cudaStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  return DRIVER("cuStreamWaitEvent", (Stream, Event, unsigned))(stream, event, flags);
}
int cudaStreamBeginCapture(Stream stream, int mode) {
  return DRIVER("cuStreamBeginCapture", (Stream, int))(stream, mode);
}
int cudaStreamEndCapture(Stream stream, void** graph) {
  return DRIVER("cuStreamEndCapture", (Stream, void**))(stream, graph);
}
int cudaEventRecord(Event event, Stream stream) {
  return DRIVER("cuEventRecord", (Event, Stream))(event, stream);
}
int cudaEventSynchronize(Event event) {
  return DRIVER("cuEventSynchronize", (Event))(event);
}
int cudaEventQuery(Event event) {
  return DRIVER("cuEventQuery", (Event))(event);
}

void use_device(int device) { /* cudaSetDevice, as far as it is needed here */
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  Context context = NULL;
  ((int (*)(Context*, int))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, device);
  ((int (*)(Context))dlsym(driver, "cuCtxSetCurrent"))(context);
}
