/* libcuda.so.1 for machines without a GPU: keeps books, copies nothing. Errors are made on demand, and written to
   CUDA_LOG_FILE. While a stream is being captured it refuses what the driver refuses, or does not promise to allow, and
   the capture is invalid from then on. */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { DEVICES = 4, FAILURES = 16, STREAMS = 64, PINNED = 4096, CAPTURES = 64, EVENTS = 64 };

static __thread Context current;
static char contexts[DEVICES];
static unsigned long next_address[DEVICES];
static unsigned long next_handle = 1;
static struct {
  const char* name;
  int result;
} failures[FAILURES];
static struct {
  int device, blocking;
  int capture; /* the number of the capture that it takes part in; 0: none */
} streams[STREAMS];
static int stream_count;
static struct { int origin, mode, invalid; } captures[CAPTURES]; /* number 0 is none */
static int capture_count;
static struct {
  Event event;
  int capture;
} recorded[EVENTS];
static int refusal;
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

/* As the driver does, of whatever it does not do. */
static int give(const char* name, int result) {
  const char* log = getenv("CUDA_LOG_FILE");
  FILE* file = result != SUCCESS && result != NOT_READY && log != NULL ? fopen(log, "a") : NULL;
  if (file == NULL) return result;
  fprintf(file, "Returning %d from %s\n", result, name);
  fclose(file);
  return result;
}

static int begin(const char* name) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (!strcmp(calls[i].name, name)) __atomic_add_fetch(&calls[i].entered, 1, __ATOMIC_RELAXED);
  }
  if (refusal != SUCCESS) return give(name, refusal);
  for (int i = 0; i < FAILURES; ++i) {
    if (failures[i].name != NULL && !strcmp(failures[i].name, name)) {
      failures[i].name = NULL;
      return give(name, failures[i].result);
    }
  }
  return SUCCESS;
}

#define BEGIN(name)                \
  const int failed = begin(#name); \
  if (failed != SUCCESS) return failed

/* Of what no program calls, and nobody counts. */
#define ANSWER(name) \
  if (refusal != SUCCESS) return give(#name, refusal)

EXPORT void fake_refuse(int result) {
  refusal = result;
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
  if (device < 0) return give("an allocation", INVALID_CONTEXT);
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
  ANSWER(cuCtxGetCurrent);
  *out = current;
  return SUCCESS;
}
EXPORT int cuCtxGetDevice(int* out) {
  ANSWER(cuCtxGetDevice);
  *out = device_of_context();
  return give("cuCtxGetDevice", current == NULL ? INVALID_CONTEXT : SUCCESS);
}
EXPORT int cuDeviceGet(int* out, int ordinal) {
  ANSWER(cuDeviceGet);
  *out = ordinal;
  return SUCCESS;
}

/* ---- captures */

static int index_of(Stream stream) {
  const uint64_t index = (stream - 0x5000) / 16;
  return stream >= 0x5000 && index < STREAMS ? (int)index : -1;
}
static int capture_of(Stream stream) {
  return index_of(stream) >= 0 ? streams[index_of(stream)].capture : 0;
}
static int* capture_of_event(Event event, int make) {
  for (int i = 0; i < EVENTS; ++i) {
    if (recorded[i].event == event) return &recorded[i].capture;
    if (recorded[i].event != NULL || !make) continue;
    recorded[i].event = event;
    return &recorded[i].capture;
  }
  return NULL;
}
static int invalidate(const char* name, int capture, int result) {
  if (captures[capture].invalid) result = CAPTURE_INVALIDATED;
  captures[capture].invalid = 1;
  return give(name, result);
}

/* Work for a stream. None may go to the legacy stream while one that waits for it is being captured. */
static int queue(const char* name, Stream stream) {
  const int capture = capture_of(stream);
  if (capture != 0 && captures[capture].invalid) return give(name, CAPTURE_INVALIDATED);
  for (int i = 0; i < stream_count && (stream == 0 || stream == 1); ++i) {
    if (streams[i].capture != 0 && streams[i].blocking) return invalidate(name, streams[i].capture, CAPTURE_IMPLICIT);
  }
  return SUCCESS;
}
/* A question about a stream, or a wait for it, that a capture does not allow. */
static int refuse_captured(const char* name, Stream stream) {
  const int capture = capture_of(stream);
  return capture == 0 ? SUCCESS : invalidate(name, capture, CAPTURE_UNSUPPORTED);
}
/* What may wait for a device, or is not promised to be safe: not while there is a capture of the global mode. */
static int refuse_unsafe(const char* name) {
  for (int i = 1; i <= capture_count; ++i) {
    if (captures[i].origin >= 0 && captures[i].mode == CAPTURE_GLOBAL) return invalidate(name, i, CAPTURE_UNSUPPORTED);
  }
  return SUCCESS;
}
#define CHECK(call)                         \
  do {                                      \
    const int refused = call;               \
    if (refused != SUCCESS) return refused; \
  } while (0)

EXPORT int cuStreamCreate(Stream* out, unsigned flags) {
  BEGIN(cuStreamCreate);
  if (current == NULL) return give("cuStreamCreate", INVALID_CONTEXT);
  const int index = stream_count++;
  streams[index].device = device_of_context();
  streams[index].blocking = (flags & NON_BLOCKING) == 0;
  *out = 0x5000 + 16ul * (Stream)index;
  return SUCCESS;
}
EXPORT int cuStreamDestroy_v2(Stream stream) {
  BEGIN(cuStreamDestroy_v2);
  return SUCCESS;
}
EXPORT int cuStreamBeginCapture_v2(Stream stream, int mode) {
  BEGIN(cuStreamBeginCapture_v2);
  if (index_of(stream) < 0) return give("cuStreamBeginCapture_v2", CAPTURE_UNSUPPORTED);
  captures[++capture_count].mode = mode;
  captures[capture_count].origin = index_of(stream);
  streams[index_of(stream)].capture = capture_count;
  return SUCCESS;
}
EXPORT int cuStreamEndCapture(Stream stream, void** graph) {
  BEGIN(cuStreamEndCapture);
  const int capture = capture_of(stream);
  if (capture == 0 || captures[capture].origin != index_of(stream))
    return give("cuStreamEndCapture", CAPTURE_UNMATCHED);
  for (int i = 0; i < stream_count; ++i) {
    if (streams[i].capture == capture) streams[i].capture = 0;
  }
  for (int i = 0; i < EVENTS; ++i) {
    if (recorded[i].capture == capture) recorded[i].capture = 0;
  }
  captures[capture].origin = -1;
  *graph = captures[capture].invalid ? NULL : &captures[capture];
  return give("cuStreamEndCapture", captures[capture].invalid ? CAPTURE_INVALIDATED : SUCCESS);
}
EXPORT int cuStreamIsCapturing(Stream stream, int* out) {
  ANSWER(cuStreamIsCapturing);
  if (stream == 0) return give("cuStreamIsCapturing", CAPTURE_IMPLICIT);
  *out = capture_of(stream) != 0;
  return SUCCESS;
}
/* On a thread without a context a stream that is being captured must not be asked where it is. */
static int ask_where(const char* name, Stream stream) {
  return current == NULL ? refuse_captured(name, stream) : queue(name, stream);
}
EXPORT int cuStreamGetDevice(Stream stream, int* out) {
  ANSWER(cuStreamGetDevice);
  CHECK(ask_where("cuStreamGetDevice", stream));
  *out = index_of(stream) >= 0 ? streams[index_of(stream)].device : device_of_context();
  return SUCCESS;
}
EXPORT int cuStreamGetCtx(Stream stream, Context* out) {
  ANSWER(cuStreamGetCtx);
  CHECK(ask_where("cuStreamGetCtx", stream));
  *out = index_of(stream) >= 0 ? &contexts[streams[index_of(stream)].device] : current;
  return SUCCESS;
}
EXPORT int cuDeviceTotalMem_v2(size_t* out, int device) {
  ANSWER(cuDeviceTotalMem_v2);
  CHECK(refuse_unsafe("cuDeviceTotalMem_v2"));
  *out = (size_t)8 << 30;
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

static int attribute_of(void* out, int attribute, Address address) {
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

EXPORT int cuPointerGetAttribute(void* out, int attribute, Address address) {
  ANSWER(cuPointerGetAttribute);
  CHECK(refuse_unsafe("cuPointerGetAttribute"));
  return give("cuPointerGetAttribute", attribute_of(out, attribute, address));
}

/* As in the driver: unlike the one above it knows no invalid address. */
EXPORT int cuPointerGetAttributes(unsigned count, const int* attributes, void** out, Address address) {
  ANSWER(cuPointerGetAttributes);
  CHECK(refuse_unsafe("cuPointerGetAttributes"));
  for (unsigned i = 0; i < count; ++i) {
    *(unsigned*)out[i] = 0;
    attribute_of(out[i], attributes[i], address);
  }
  return SUCCESS;
}

/* ---- the calls themselves */

EXPORT int cuMemAlloc_v2(Address* out, size_t bytes) {
  BEGIN(cuMemAlloc_v2);
  CHECK(refuse_unsafe("cuMemAlloc_v2"));
  return new_address(out, device_of_context(), bytes);
}
EXPORT int cuMemFree_v2(Address address) {
  BEGIN(cuMemFree_v2);
  CHECK(refuse_unsafe("cuMemFree_v2"));
  return SUCCESS;
}
EXPORT int cuMemAllocPitch_v2(Address* out, size_t* pitch, size_t width, size_t rows, unsigned element) {
  BEGIN(cuMemAllocPitch_v2);
  CHECK(refuse_unsafe("cuMemAllocPitch_v2"));
  *pitch = (width + 511) & ~511ul;
  return new_address(out, device_of_context(), *pitch * rows);
}
EXPORT int cuMemAllocManaged(Address* out, size_t bytes, unsigned flags) {
  BEGIN(cuMemAllocManaged);
  CHECK(refuse_unsafe("cuMemAllocManaged"));
  return new_address(out, device_of_context(), bytes);
}
EXPORT int cuMemAllocAsync(Address* out, size_t bytes, Stream stream) {
  BEGIN(cuMemAllocAsync);
  CHECK(queue("cuMemAllocAsync", stream));
  return new_address(out, index_of(stream) >= 0 ? streams[index_of(stream)].device : device_of_context(), bytes);
}
EXPORT int cuMemAllocAsync_ptsz(Address* out, size_t bytes, Stream stream) {
  BEGIN(cuMemAllocAsync_ptsz);
  return new_address(out, device_of_context(), bytes);
}
EXPORT int cuMemAllocFromPoolAsync(Address* out, size_t bytes, uint64_t pool, Stream stream) {
  BEGIN(cuMemAllocFromPoolAsync);
  CHECK(queue("cuMemAllocFromPoolAsync", stream));
  return new_address(out, (int)pool, bytes); /* a pool is named by its device here */
}
EXPORT int cuMemFreeAsync(Address address, Stream stream) {
  BEGIN(cuMemFreeAsync);
  CHECK(queue("cuMemFreeAsync", stream));
  return SUCCESS;
}
EXPORT int cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  BEGIN(cuMemHostAlloc);
  CHECK(refuse_unsafe("cuMemHostAlloc"));
  *out = malloc(bytes);
  pin(*out, bytes);
  return SUCCESS;
}
EXPORT int cuMemFreeHost(void* address) {
  BEGIN(cuMemFreeHost);
  CHECK(refuse_unsafe("cuMemFreeHost"));
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
DOES_NOTHING(cuEventDestroy_v2, (Event event))

#define QUEUES(name, parameters) \
  EXPORT int name parameters {   \
    BEGIN(name);                 \
    return queue(#name, stream); \
  }
QUEUES(cuMemcpyHtoDAsync_v2, (Address target, const void* source, size_t bytes, Stream stream))
QUEUES(cuMemcpyDtoHAsync_v2, (void* target, Address source, size_t bytes, Stream stream))
QUEUES(cuLaunchHostFunc, (Stream stream, void (*function)(void*), void* data))

#define WAITS(name, parameters, refused) \
  EXPORT int name parameters {           \
    BEGIN(name);                         \
    return refused;                      \
  }
WAITS(cuCtxSynchronize, (void), refuse_unsafe("cuCtxSynchronize"))
WAITS(cuStreamSynchronize, (Stream stream), refuse_captured("cuStreamSynchronize", stream))
WAITS(cuStreamSynchronize_ptsz, (Stream stream), refuse_captured("cuStreamSynchronize_ptsz", stream))
WAITS(cuStreamQuery, (Stream stream), refuse_captured("cuStreamQuery", stream))

EXPORT int cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  BEGIN(cuStreamWaitEvent);
  CHECK(queue("cuStreamWaitEvent", stream));
  const int* const capture = capture_of_event(event, 0);
  if (capture != NULL && *capture != 0) streams[index_of(stream)].capture = *capture;
  return SUCCESS;
}
EXPORT int cuEventRecord(Event event, Stream stream) {
  BEGIN(cuEventRecord);
  CHECK(queue("cuEventRecord", stream));
  *capture_of_event(event, 1) = capture_of(stream);
  return SUCCESS;
}
static int refuse_captured_event(const char* name, Event event) {
  const int* const capture = capture_of_event(event, 0);
  return capture == NULL || *capture == 0 ? SUCCESS : invalidate(name, *capture, CAPTURED_EVENT);
}
WAITS(cuEventSynchronize, (Event event), refuse_captured_event("cuEventSynchronize", event))
WAITS(cuEventQuery, (Event event), refuse_captured_event("cuEventQuery", event))

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
    {"cuEventRecord", 2000, 0, cuEventRecord},
    {"cuEventSynchronize", 2000, 0, cuEventSynchronize},
    {"cuEventQuery", 2000, 0, cuEventQuery},
    {"cuEventDestroy", 4000, 0, cuEventDestroy_v2},
    {"cuStreamWaitEvent", 3020, 0, cuStreamWaitEvent},
    {"cuStreamQuery", 2000, 0, cuStreamQuery},
    {"cuStreamCreate", 2000, 0, cuStreamCreate},
    {"cuStreamBeginCapture", 10010, 0, cuStreamBeginCapture_v2},
    {"cuStreamEndCapture", 10000, 0, cuStreamEndCapture},
    {"cuStreamDestroy", 4000, 0, cuStreamDestroy_v2},
    {"cuMemcpyHtoDAsync", 3020, 0, cuMemcpyHtoDAsync_v2},
    {"cuMemcpyDtoHAsync", 3020, 0, cuMemcpyDtoHAsync_v2},
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
