/* libcuda.so.1 for machines without a GPU: keeps books, copies nothing. Errors are made on demand. */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { DEVICES = 4, FAILURES = 16, STREAMS = 64, PINNED = 4096 };

static __thread Context current;
static char contexts[DEVICES];
static unsigned long next_address[DEVICES];
static unsigned long next_handle = 1;
static struct {
  const char* name;
  int result;
} failures[FAILURES];
static struct { int device, capturing; } streams[STREAMS];
static int stream_count;
static struct {
  char* begin;
  size_t bytes;
} pinned[PINNED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- counting, and failing when told to */

static struct {
  const char* name;
  unsigned long entered;
} calls[] = {
#define NAME(name, parameters, arguments) {#name, 0},
    FAKE_CALLS(NAME)
#undef NAME
};

static int begin(const char* name) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (!strcmp(calls[i].name, name)) __atomic_add_fetch(&calls[i].entered, 1, __ATOMIC_RELAXED);
  }
  for (int i = 0; i < FAILURES; ++i) {
    if (failures[i].name != NULL && !strcmp(failures[i].name, name)) {
      failures[i].name = NULL;
      return failures[i].result;
    }
  }
  return SUCCESS;
}

EXPORT void fake_fail(const char* name, int result) {
  for (int i = 0; i < FAILURES; ++i) {
    if (failures[i].name != NULL) continue;
    failures[i].result = result;
    failures[i].name = name;
    return;
  }
}

EXPORT unsigned long fake_entered(const char* name) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (!strcmp(calls[i].name, name)) return __atomic_load_n(&calls[i].entered, __ATOMIC_RELAXED);
  }
  return 0;
}

/* ---- contexts, streams, addresses */

static int device_of_context(void) {
  return current == NULL ? -1 : (int)((char*)current - contexts);
}
static Address base_of(int device) {
  return (Address)(0x50 + device) << 40;
}

static int new_address(Address* out, int device, size_t bytes) {
  if (device < 0) return 201; /* CUDA_ERROR_INVALID_CONTEXT */
  *out = base_of(device) + __atomic_fetch_add(&next_address[device], (bytes + 4095) & ~4095ul, __ATOMIC_RELAXED) + 4096;
  return SUCCESS;
}

EXPORT int cuInit(unsigned flags) {
  return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRetain(Context* out, int device) {
  *out = &contexts[device];
  return SUCCESS;
}
EXPORT int cuCtxSetCurrent(Context context) {
  current = context;
  return SUCCESS;
}
EXPORT int cuCtxGetCurrent(Context* out) {
  *out = current;
  return SUCCESS;
}
EXPORT int cuCtxGetDevice(int* out) {
  *out = device_of_context();
  return current == NULL ? 201 : SUCCESS;
}

EXPORT Stream fake_stream(void) {
  streams[stream_count].device = device_of_context();
  return 0x5000 + 16ul * (Stream)stream_count++;
}
static int index_of(Stream stream) {
  const uint64_t index = (stream - 0x5000) / 16;
  return stream >= 0x5000 && index < STREAMS ? (int)index : -1;
}
EXPORT void fake_capture(Stream stream, int capturing) {
  streams[index_of(stream)].capturing = capturing;
}
EXPORT int cuStreamIsCapturing(Stream stream, int* out) {
  if (stream == 0) abort(); /* the legacy stream, which must not be asked about */
  *out = index_of(stream) >= 0 && streams[index_of(stream)].capturing;
  return SUCCESS;
}
EXPORT int cuStreamGetDevice(Stream stream, int* out) {
  *out = index_of(stream) >= 0 ? streams[index_of(stream)].device : device_of_context();
  return SUCCESS;
}

static int pinned_index(const void* address) {
  for (int i = 0; i < PINNED; ++i) {
    const char* begin = pinned[i].begin;
    if (begin != NULL && (const char*)address >= begin && (const char*)address < begin + pinned[i].bytes) return i;
  }
  return -1;
}
static void pin(void* address, size_t bytes) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < PINNED; ++i) {
    if (pinned[i].begin != NULL) continue;
    pinned[i].bytes = bytes;
    pinned[i].begin = address;
    break;
  }
  pthread_mutex_unlock(&lock);
}
static int unpin(void* address) {
  pthread_mutex_lock(&lock);
  const int index = pinned_index(address);
  if (index >= 0) pinned[index].begin = NULL;
  pthread_mutex_unlock(&lock);
  return index >= 0 ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuPointerGetAttribute(void* out, int attribute, Address address) {
  const long device = (long)(address >> 40) - 0x50;
  const int on_device = device >= 0 && device < DEVICES;
  if (attribute == 2) {
    if (!on_device && pinned_index((void*)address) < 0) return INVALID_VALUE;
    *(unsigned*)out = on_device ? 2 : 1;
    return SUCCESS;
  }
  if (attribute != 9 || !on_device) return INVALID_VALUE;
  *(int*)out = (int)device;
  return SUCCESS;
}

/* As in the driver: unlike the one above it knows no invalid address. */
EXPORT int cuPointerGetAttributes(unsigned count, const int* attributes, void** out, Address address) {
  for (unsigned i = 0; i < count; ++i) {
    *(unsigned*)out[i] = 0;
    cuPointerGetAttribute(out[i], attributes[i], address);
  }
  return SUCCESS;
}

/* ---- the calls themselves */

#define BEGIN(name)                \
  const int failed = begin(#name); \
  if (failed != SUCCESS) return failed

EXPORT int cuMemAlloc_v2(Address* out, size_t bytes) {
  BEGIN(cuMemAlloc_v2);
  return new_address(out, device_of_context(), bytes);
}
EXPORT int cuMemFree_v2(Address address) {
  BEGIN(cuMemFree_v2);
  return SUCCESS;
}
EXPORT int cuMemAllocPitch_v2(Address* out, size_t* pitch, size_t width, size_t rows, unsigned element) {
  BEGIN(cuMemAllocPitch_v2);
  *pitch = (width + 511) & ~511ul;
  return new_address(out, device_of_context(), *pitch * rows);
}
EXPORT int cuMemAllocManaged(Address* out, size_t bytes, unsigned flags) {
  BEGIN(cuMemAllocManaged);
  return new_address(out, device_of_context(), bytes);
}
EXPORT int cuMemAllocAsync(Address* out, size_t bytes, Stream stream) {
  BEGIN(cuMemAllocAsync);
  return new_address(out, index_of(stream) >= 0 ? streams[index_of(stream)].device : device_of_context(), bytes);
}
EXPORT int cuMemAllocAsync_ptsz(Address* out, size_t bytes, Stream stream) {
  BEGIN(cuMemAllocAsync_ptsz);
  return new_address(out, device_of_context(), bytes);
}
EXPORT int cuMemAllocFromPoolAsync(Address* out, size_t bytes, uint64_t pool, Stream stream) {
  BEGIN(cuMemAllocFromPoolAsync);
  return new_address(out, (int)pool, bytes); /* a pool is named by its device here */
}
EXPORT int cuMemFreeAsync(Address address, Stream stream) {
  BEGIN(cuMemFreeAsync);
  return SUCCESS;
}
EXPORT int cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  BEGIN(cuMemHostAlloc);
  *out = malloc(bytes);
  pin(*out, bytes);
  return SUCCESS;
}
EXPORT int cuMemFreeHost(void* address) {
  BEGIN(cuMemFreeHost);
  const int result = unpin(address);
  free(address);
  return result;
}
EXPORT int cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  BEGIN(cuMemHostRegister_v2);
  pin(address, bytes);
  return SUCCESS;
}
EXPORT int cuMemHostUnregister(void* address) {
  BEGIN(cuMemHostUnregister);
  return unpin(address);
}
EXPORT int cuMemCreate(uint64_t* out, size_t bytes, const Properties* properties, uint64_t flags) {
  BEGIN(cuMemCreate);
  *out = __atomic_fetch_add(&next_handle, 1, __ATOMIC_RELAXED);
  return SUCCESS;
}
EXPORT int cuMemRelease(uint64_t handle) {
  BEGIN(cuMemRelease);
  return SUCCESS;
}
EXPORT int cuMemMap(Address address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags) {
  BEGIN(cuMemMap);
  return SUCCESS;
}
EXPORT int cuMemUnmap(Address address, size_t bytes) {
  BEGIN(cuMemUnmap);
  return SUCCESS;
}
EXPORT int cuMemSetAccess(Address address, size_t bytes, const void* access, size_t count) {
  BEGIN(cuMemSetAccess);
  return SUCCESS;
}
EXPORT int cuMemRetainAllocationHandle(uint64_t* out, void* address) {
  BEGIN(cuMemRetainAllocationHandle);
  *out = next_handle - 1; /* the newest */
  return SUCCESS;
}
EXPORT int cuIpcGetMemHandle(IpcHandle* out, Address address) {
  BEGIN(cuIpcGetMemHandle);
  memset(out, 0, sizeof *out);
  memcpy(out->bytes + 56, &address, sizeof address);
  return SUCCESS;
}
EXPORT int cuIpcOpenMemHandle_v2(Address* out, IpcHandle handle, unsigned flags) {
  BEGIN(cuIpcOpenMemHandle_v2);
  memcpy(out, handle.bytes + 56, sizeof *out);
  return flags == 1 ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuIpcCloseMemHandle(Address address) {
  BEGIN(cuIpcCloseMemHandle);
  return SUCCESS;
}

#define DOES_NOTHING(name, parameters) \
  EXPORT int name parameters {         \
    BEGIN(name);                       \
    return SUCCESS;                    \
  }
DOES_NOTHING(cuMemcpy, (Address target, Address source, size_t bytes))
DOES_NOTHING(cuMemcpyHtoD_v2, (Address target, const void* source, size_t bytes))
DOES_NOTHING(cuMemcpyHtoD_v2_ptds, (Address target, const void* source, size_t bytes))
DOES_NOTHING(cuMemcpyDtoH_v2, (void* target, Address source, size_t bytes))
DOES_NOTHING(cuMemcpyDtoD_v2, (Address target, Address source, size_t bytes))
DOES_NOTHING(cuMemcpy2D_v2, (const Copy2d* copy))
DOES_NOTHING(cuMemcpyHtoDAsync_v2, (Address target, const void* source, size_t bytes, Stream stream))
DOES_NOTHING(cuMemcpyDtoHAsync_v2, (void* target, Address source, size_t bytes, Stream stream))
DOES_NOTHING(cuCtxSynchronize, (void))
DOES_NOTHING(cuStreamSynchronize, (Stream stream))
DOES_NOTHING(cuStreamSynchronize_ptsz, (Stream stream))
DOES_NOTHING(cuStreamQuery, (Stream stream))
DOES_NOTHING(cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))
DOES_NOTHING(cuEventRecord, (Event event, Stream stream))
DOES_NOTHING(cuEventSynchronize, (Event event))
DOES_NOTHING(cuEventQuery, (Event event))

/* ---- the driver's own way to give its functions: not by the names that it exports */

static const struct {
  const char* base;
  int since;
  int per_thread;
  void* function;
} entry_points[] = {
    {"cuInit", 2000, 0, cuInit},
    {"cuCtxSetCurrent", 4000, 0, cuCtxSetCurrent},
    {"cuGetProcAddress", 11030, 0, cuGetProcAddress},
    {"cuGetProcAddress", 12000, 0, cuGetProcAddress_v2},
    {"cuMemAlloc", 3020, 0, cuMemAlloc_v2},
    {"cuMemFree", 3020, 0, cuMemFree_v2},
    {"cuMemAllocAsync", 11020, 0, cuMemAllocAsync},
    {"cuMemAllocAsync", 11020, 1, cuMemAllocAsync_ptsz},
    {"cuMemHostAlloc", 2020, 0, cuMemHostAlloc},
    {"cuMemFreeHost", 2000, 0, cuMemFreeHost},
    {"cuMemcpyHtoD", 3020, 0, cuMemcpyHtoD_v2},
    {"cuMemcpyHtoD", 7000, 1, cuMemcpyHtoD_v2_ptds},
    {"cuMemcpyDtoH", 3020, 0, cuMemcpyDtoH_v2},
    {"cuStreamSynchronize", 2000, 0, cuStreamSynchronize},
    {"cuStreamSynchronize", 7000, 1, cuStreamSynchronize_ptsz},
    {"cuCtxSynchronize", 2000, 0, cuCtxSynchronize},
    /* of a CUDA that is not known yet, with other arguments */
    {"cuMemAlloc", 99000, 0, cuMemAllocPitch_v2},
};

EXPORT int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags, int* status) {
  int best = -1;
  *out = NULL;
  for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; ++i) {
    if (strcmp(entry_points[i].base, name) || entry_points[i].since > version) continue;
    if (entry_points[i].per_thread && flags != 2) continue;
    *out = entry_points[i].function;
    best = (int)i;
  }
  if (status != NULL) *status = best < 0;
  return best < 0 ? NOT_FOUND : SUCCESS;
}

EXPORT int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
