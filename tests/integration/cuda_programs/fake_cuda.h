/* As much of CUDA's driver as the tests use, under its exported names. An address of device memory tells its device. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef uint64_t Address;
typedef void* Context;
typedef uint64_t Stream;
typedef void* Event;
typedef struct {
  unsigned type, handles, location_type;
  int location;
  uint64_t rest[4];
} Properties;
typedef struct {
  char bytes[64];
} IpcHandle;
typedef struct {
  size_t source_x, source_y;
  unsigned source_type;
  const void* source_host;
  Address source_device;
  void* source_array;
  size_t source_pitch, target_x, target_y;
  unsigned target_type;
  void* target_host;
  Address target_device;
  void* target_array;
  size_t target_pitch, width, height;
} Copy2d;

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  DEINITIALIZED = 4,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  NOT_READY = 600,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_IMPLICIT = 906,
  CAPTURED_EVENT = 907,
  NON_BLOCKING = 1, /* of a stream that is made */
  CAPTURE_GLOBAL = 0,
  CAPTURE_THREAD_LOCAL = 1,
  CAPTURE_RELAXED = 2,
};

/* Every function that a program can reach: result, name, parameters, names of the parameters. */
#define FAKE_CALLS(X)                                                                                                 \
  X(cuMemAlloc_v2, (Address * out, size_t bytes), (out, bytes))                                                       \
  X(cuMemFree_v2, (Address address), (address))                                                                       \
  X(cuMemAllocPitch_v2, (Address * out, size_t * pitch, size_t width, size_t rows, unsigned element),                 \
    (out, pitch, width, rows, element))                                                                               \
  X(cuMemAllocManaged, (Address * out, size_t bytes, unsigned flags), (out, bytes, flags))                            \
  X(cuMemAllocAsync, (Address * out, size_t bytes, Stream stream), (out, bytes, stream))                              \
  X(cuMemAllocAsync_ptsz, (Address * out, size_t bytes, Stream stream), (out, bytes, stream))                         \
  X(cuMemAllocFromPoolAsync, (Address * out, size_t bytes, uint64_t pool, Stream stream), (out, bytes, pool, stream)) \
  X(cuMemFreeAsync, (Address address, Stream stream), (address, stream))                                              \
  X(cuMemHostAlloc, (void** out, size_t bytes, unsigned flags), (out, bytes, flags))                                  \
  X(cuMemFreeHost, (void* address), (address))                                                                        \
  X(cuMemHostRegister_v2, (void* address, size_t bytes, unsigned flags), (address, bytes, flags))                     \
  X(cuMemHostUnregister, (void* address), (address))                                                                  \
  X(cuMemCreate, (uint64_t * out, size_t bytes, const Properties* properties, uint64_t flags),                        \
    (out, bytes, properties, flags))                                                                                  \
  X(cuMemRelease, (uint64_t handle), (handle))                                                                        \
  X(cuMemMap, (Address address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags),                        \
    (address, bytes, offset, handle, flags))                                                                          \
  X(cuMemUnmap, (Address address, size_t bytes), (address, bytes))                                                    \
  X(cuMemSetAccess, (Address address, size_t bytes, const void* access, size_t count),                                \
    (address, bytes, access, count))                                                                                  \
  X(cuMemRetainAllocationHandle, (uint64_t * out, void* address), (out, address))                                     \
  X(cuIpcGetMemHandle, (IpcHandle * out, Address address), (out, address))                                            \
  X(cuIpcOpenMemHandle_v2, (Address * out, IpcHandle handle, unsigned flags), (out, handle, flags))                   \
  X(cuIpcCloseMemHandle, (Address address), (address))                                                                \
  X(cuMemcpy, (Address target, Address source, size_t bytes), (target, source, bytes))                                \
  X(cuMemcpyHtoD_v2, (Address target, const void* source, size_t bytes), (target, source, bytes))                     \
  X(cuMemcpyHtoD_v2_ptds, (Address target, const void* source, size_t bytes), (target, source, bytes))                \
  X(cuMemcpyDtoH_v2, (void* target, Address source, size_t bytes), (target, source, bytes))                           \
  X(cuMemcpyDtoD_v2, (Address target, Address source, size_t bytes), (target, source, bytes))                         \
  X(cuMemcpy2D_v2, (const Copy2d* copy), (copy))                                                                      \
  X(cuMemcpyHtoDAsync_v2, (Address target, const void* source, size_t bytes, Stream stream),                          \
    (target, source, bytes, stream))                                                                                  \
  X(cuMemcpyDtoHAsync_v2, (void* target, Address source, size_t bytes, Stream stream),                                \
    (target, source, bytes, stream))                                                                                  \
  X(cuCtxSynchronize, (void), ())                                                                                     \
  X(cuStreamSynchronize, (Stream stream), (stream))                                                                   \
  X(cuStreamSynchronize_ptsz, (Stream stream), (stream))                                                              \
  X(cuStreamQuery, (Stream stream), (stream))                                                                         \
  X(cuStreamWaitEvent, (Stream stream, Event event, unsigned flags), (stream, event, flags))                          \
  X(cuEventRecord, (Event event, Stream stream), (event, stream))                                                     \
  X(cuEventSynchronize, (Event event), (event))                                                                       \
  X(cuEventQuery, (Event event), (event))                                                                             \
  X(cuEventDestroy_v2, (Event event), (event))                                                                        \
  X(cuStreamCreate, (Stream * out, unsigned flags), (out, flags))                                                     \
  X(cuStreamDestroy_v2, (Stream stream), (stream))                                                                    \
  X(cuStreamBeginCapture_v2, (Stream stream, int mode), (stream, mode))                                               \
  X(cuStreamEndCapture, (Stream stream, void** graph), (stream, graph))                                               \
  X(cuLaunchHostFunc, (Stream stream, void (*function)(void*), void* data), (stream, function, data))

/* What programs use beside them, and what is not in devsan's list. */
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(Context* out, int device);
int cuCtxSetCurrent(Context context);
int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags, int* status);

/* The test's own: the next call of that name gives `result` and does nothing. */
void fake_fail(const char* name, int result);
/* How often the function itself was entered. */
unsigned long fake_entered(const char* name);
/* From now on every function gives that result and does nothing, as before cuInit(), in a forked child, or at exit. */
void fake_refuse(int result);
