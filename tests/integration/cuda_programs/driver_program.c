/* Uses the driver: `driver_program WAY SCENARIO…`. WAY is how it comes to the driver's functions; with -DDIRECT it is
   linked with them and WAY is of no account. Prints every result, so that runs can be compared. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_cuda.h"

int torch_op(int x);

#ifdef DIRECT
#define DECLARE(name, parameters, arguments) int name parameters;
FAKE_CALLS(DECLARE)
#define DRIVER(name) name
#else
#define DECLARE(name, parameters, arguments) static int(*p_##name) parameters;
FAKE_CALLS(DECLARE)
#define DRIVER(name) p_##name
static int (*p_cuDevicePrimaryCtxRetain)(Context*, int);
static int (*p_cuCtxSetCurrent)(Context);
static void (*p_fake_fail)(const char*, int);
static unsigned long (*p_fake_entered)(const char*);
static void (*p_fake_refuse)(int);
#define cuDevicePrimaryCtxRetain p_cuDevicePrimaryCtxRetain
#define cuCtxSetCurrent p_cuCtxSetCurrent
#define fake_fail p_fake_fail
#define fake_entered p_fake_entered
#define fake_refuse p_fake_refuse
#endif

static int show(const char* what, int result) {
  printf("%s: %d\n", what, result);
  return result;
}
#define SHOW(name, ...) show(#name, DRIVER(name)(__VA_ARGS__))

static void use_device(int device) {
  Context context;
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
}

static Stream new_stream(unsigned flags) {
  Stream stream = 0;
  DRIVER(cuStreamCreate)(&stream, flags);
  return stream;
}

/* ---- scenarios */

static void basic(void) {
  Address address = 0, managed = 0, rows = 0;
  void* pinned = NULL;
  size_t pitch = 0;
  char host[256];
  use_device(0);
  SHOW(cuMemAlloc_v2, &address, 1 << 20);
  printf("address: %lx\n", (long)address);
  SHOW(cuMemAllocManaged, &managed, 4096, 1);
  SHOW(cuMemAllocPitch_v2, &rows, &pitch, 100, 10, 4);
  SHOW(cuMemHostAlloc, &pinned, 65536, 0);
  SHOW(cuMemHostRegister_v2, host, sizeof host, 0);
  SHOW(cuMemcpyHtoD_v2, address, host, 100);
  SHOW(cuStreamSynchronize, 0);
  SHOW(cuMemHostUnregister, host);
  SHOW(cuMemFree_v2, address);
  SHOW(cuMemFree_v2, 0);
  SHOW(cuMemFree_v2, managed);
}

static void copies(void) {
  char pageable[64];
  void* pinned = NULL;
  Address memory = 0;
  use_device(1);
  Stream stream = new_stream(0);
  DRIVER(cuMemAlloc_v2)(&memory, 4096);
  DRIVER(cuMemHostAlloc)(&pinned, 4096, 0);
  SHOW(cuMemcpyHtoD_v2, memory, pageable, 10);
  SHOW(cuMemcpyHtoD_v2, memory, (char*)pinned + 100, 11);
  SHOW(cuMemcpyDtoH_v2, pageable, memory, 12);
  SHOW(cuMemcpyDtoD_v2, memory, memory + 100, 13);
  SHOW(cuMemcpyHtoDAsync_v2, memory, pageable, 14, stream);
  SHOW(cuMemcpyDtoHAsync_v2, pinned, memory, 15, stream);
  SHOW(cuMemcpyDtoHAsync_v2, pageable, memory, 16, stream);
  SHOW(cuMemcpy, (Address)pageable, memory, 17); /* the driver finds out which is which */
  Copy2d copy = {0};
  copy.source_type = 2;
  copy.source_device = memory;
  copy.target_type = 1;
  copy.target_host = pinned;
  copy.width = 6;
  copy.height = 3;
  SHOW(cuMemcpy2D_v2, &copy);
}

static void waits(void) {
  use_device(0);
  Stream stream = new_stream(0);
  char event[2];
  SHOW(cuEventRecord, event, stream);
  SHOW(cuStreamWaitEvent, stream, event, 0);
  fake_fail("cuEventQuery", NOT_READY);
  SHOW(cuEventQuery, event);
  SHOW(cuEventQuery, event);
  fake_fail("cuStreamQuery", NOT_READY);
  SHOW(cuStreamQuery, stream);
  SHOW(cuStreamQuery, stream);
  use_device(2); /* the event is still the other device's, and so is the stream */
  SHOW(cuEventSynchronize, event);
  SHOW(cuStreamSynchronize, stream);
  SHOW(cuCtxSynchronize);
}

static void virtual_memory(void) {
  uint64_t handle = 0, again = 0, of_host = 0;
  Address place = (Address)0x53 << 40;
  Properties on_device = {1, 1, 1, 3, {0}};
  Properties on_host = {1, 1, 2, 0, {0}};
  use_device(0);
  SHOW(cuMemCreate, &handle, 2 << 20, &on_device, 0);
  SHOW(cuMemMap, place, 1 << 20, 0, handle, 0);
  SHOW(cuMemMap, place + (1 << 20), 1 << 20, 1 << 20, handle, 0);
  SHOW(cuMemSetAccess, place, 2 << 20, NULL, 0);
  SHOW(cuMemRetainAllocationHandle, &again, (void*)place);
  SHOW(cuMemRelease, handle);
  SHOW(cuMemRelease, again);
  SHOW(cuMemUnmap, place, 2 << 20);
  SHOW(cuMemCreate, &handle, 4 << 20, &on_device, 0);
  SHOW(cuMemMap, place, 4 << 20, 0, handle, 0);
  SHOW(cuMemRelease, handle); /* still mapped */
  SHOW(cuMemCreate, &of_host, 4096, &on_host, 0);
}

static void pools(void) {
  Address own = 0, other = 0, captured = 0;
  use_device(0);
  Stream stream = new_stream(0);
  SHOW(cuMemAllocAsync, &own, 1000, stream);
  SHOW(cuMemAllocFromPoolAsync, &other, 2000, 2, stream); /* another device's pool */
  use_device(1);
  SHOW(cuMemAllocAsync, &captured, 4000, stream); /* the stream is device 0's */
  SHOW(cuMemFreeAsync, own, stream);
}

static void capture(void) {
  Address memory = 0, in_graph = 0;
  char event[2];
  char* pinned = NULL;
  use_device(0);
  Stream stream = new_stream(0);
  DRIVER(cuMemHostAlloc)((void**)&pinned, 64, 0);
  DRIVER(cuMemAllocAsync)(&memory, 512, stream);
  void* graph = NULL;
  SHOW(cuStreamBeginCapture_v2, stream, CAPTURE_GLOBAL);
  SHOW(cuMemAllocAsync, &in_graph, 1024, stream);
  SHOW(cuMemFreeAsync, memory, stream);
  SHOW(cuMemcpyHtoDAsync_v2, memory, pinned, 32, stream);
  SHOW(cuMemcpyDtoHAsync_v2, event, memory, 1, stream); /* pageable, but nobody waits for a node of a graph */
  SHOW(cuEventRecord, event, stream);
  SHOW(cuStreamEndCapture, stream, &graph);
  SHOW(cuMemFreeAsync, memory, stream);
}

/* As autograd's threads do: they use a stream that is being captured, by its handle, and have no context of their own.
 */
static struct {
  Stream stream, joined;
  Address memory;
  char *pinned, *event, *joining;
} graph_work;

static void* work_without_context(void* unused) {
  SHOW(cuMemcpyHtoDAsync_v2, graph_work.memory, graph_work.pinned, 32, graph_work.stream);
  SHOW(cuEventRecord, graph_work.event, graph_work.stream);
  SHOW(cuStreamWaitEvent, graph_work.joined, graph_work.event, 0);
  SHOW(cuMemcpyDtoHAsync_v2, graph_work.pinned, graph_work.memory, 16, graph_work.joined);
  SHOW(cuEventRecord, graph_work.joining, graph_work.joined);
  SHOW(cuStreamWaitEvent, graph_work.stream, graph_work.joining, 0);
  return NULL;
}

static void capture_on_thread(int mode) {
  pthread_t thread;
  static char events[2];
  void* graph = NULL;
  use_device(1);
  graph_work.stream = new_stream(NON_BLOCKING);
  graph_work.joined = new_stream(NON_BLOCKING);
  graph_work.event = &events[0];
  graph_work.joining = &events[1];
  DRIVER(cuMemAlloc_v2)(&graph_work.memory, 4096);
  DRIVER(cuMemHostAlloc)((void**)&graph_work.pinned, 4096, 0);
  SHOW(cuStreamBeginCapture_v2, graph_work.stream, mode);
  pthread_create(&thread, NULL, work_without_context, NULL);
  pthread_join(thread, NULL);
  use_device(0); /* work of another device meanwhile, which the capture allows */
  Address other = 0;
  Stream stream = new_stream(NON_BLOCKING);
  SHOW(cuMemAllocAsync, &other, 64, stream);
  SHOW(cuMemcpyHtoDAsync_v2, other, graph_work.pinned, 8, stream);
  SHOW(cuStreamSynchronize, stream);
  use_device(1);
  SHOW(cuStreamEndCapture, graph_work.stream, &graph);
  printf("graph: %d\n", graph != NULL);
  SHOW(cuMemcpyHtoDAsync_v2, graph_work.memory, graph_work.pinned, 64, graph_work.joined);
  SHOW(cuStreamSynchronize, graph_work.joined);
}

static void captures(void) {
  capture_on_thread(CAPTURE_GLOBAL);
  capture_on_thread(CAPTURE_THREAD_LOCAL);
  capture_on_thread(CAPTURE_RELAXED);
}

/* A capture that the program itself makes invalid is over once it has been ended, and so is one that never began. */
static void invalid_capture(void) {
  void* graph = NULL;
  char* pinned = NULL;
  char pageable[8];
  Address memory = 0;
  use_device(0);
  Stream stream = new_stream(NON_BLOCKING);
  DRIVER(cuMemAlloc_v2)(&memory, 4096);
  SHOW(cuStreamBeginCapture_v2, 0, CAPTURE_GLOBAL);
  SHOW(cuStreamBeginCapture_v2, stream, CAPTURE_GLOBAL);
  SHOW(cuStreamSynchronize, stream);
  SHOW(cuStreamEndCapture, stream, &graph);
  SHOW(cuMemcpyDtoHAsync_v2, pageable, memory, 8, stream);
}

static void* allocate_without_context(void* unused) {
  Address memory = 0;
  SHOW(cuMemAlloc_v2, &memory, 100);
  SHOW(cuStreamSynchronize, 0);
  return NULL;
}

/* Calls of which the driver refuses to serve any: by a thread without a context, before it is initialised, and when it
   is gone. */
static void refused(void) {
  pthread_t thread;
  Address memory = 0;
  use_device(0);
  SHOW(cuMemAlloc_v2, &memory, 100);
  pthread_create(&thread, NULL, allocate_without_context, NULL);
  pthread_join(thread, NULL);
  fake_refuse(NOT_INITIALIZED);
  SHOW(cuMemFree_v2, memory);
  fake_refuse(DEINITIALIZED);
  SHOW(cuMemFree_v2, memory);
  SHOW(cuStreamSynchronize, 0);
}

/* What becomes of streams and events. */
static void streams(void) {
  char* pinned = NULL;
  Address memory = 0;
  void* graph = NULL;
  const Event event = (Event)0x7100, other = (Event)0x7200;
  use_device(0);
  const Stream own = new_stream(NON_BLOCKING), blocking = new_stream(0);
  use_device(2);
  const Stream far = new_stream(NON_BLOCKING);
  DRIVER(cuMemAlloc_v2)(&memory, 4096);
  DRIVER(cuMemHostAlloc)((void**)&pinned, 4096, 0);
  SHOW(cuMemcpyHtoDAsync_v2, memory, pinned, 8, own);
  SHOW(cuEventRecord, event, own); /* of a device that is not the current one */
  SHOW(cuStreamWaitEvent, far, event, 0);
  SHOW(cuEventRecord, other, blocking);
  SHOW(cuStreamWaitEvent, 0, other, 0);
  fake_fail("cuEventQuery", NOT_READY);
  SHOW(cuEventQuery, event);
  SHOW(cuEventQuery, event);
  SHOW(cuEventSynchronize, other);
  SHOW(cuStreamQuery, own);
  SHOW(cuStreamSynchronize, far);
  SHOW(cuStreamSynchronize, blocking);
  SHOW(cuMemcpyDtoH_v2, pinned, memory, 8);
  SHOW(cuLaunchHostFunc, far, NULL, NULL);
  SHOW(cuStreamBeginCapture_v2, far, CAPTURE_RELAXED);
  SHOW(cuEventRecord, event, far); /* into the graph */
  SHOW(cuStreamEndCapture, far, &graph);
  SHOW(cuCtxSynchronize);
  SHOW(cuEventDestroy_v2, event);
  SHOW(cuStreamDestroy_v2, own);
  SHOW(cuMemFree_v2, memory);
}

static void failures(void) {
  Address memory = 0, kept = 0;
  IpcHandle shared;
  use_device(0);
  SHOW(cuMemAlloc_v2, &memory, 100);
  SHOW(cuMemAlloc_v2, &kept, 200);
  fake_fail("cuMemAlloc_v2", OUT_OF_MEMORY);
  SHOW(cuMemAlloc_v2, &kept, (size_t)1 << 40);
  fake_fail("cuMemFree_v2", 700);
  SHOW(cuMemFree_v2, memory); /* what was not freed is still there */
  fake_fail("cuStreamSynchronize", 700);
  SHOW(cuStreamSynchronize, 0);
  SHOW(cuIpcGetMemHandle, &shared, memory);
  Address opened = 0;
  SHOW(cuIpcOpenMemHandle_v2, &opened, shared, 1); /* 64 bytes on the stack */
  printf("opened: %d\n", opened == memory);
  SHOW(cuIpcCloseMemHandle, opened);
}

static void* one_thread(void* device) {
  use_device((int)(long)device);
  Address kept = 0;
  for (int i = 0; i < 2000; ++i) {
    Address address = 0;
    if (DRIVER(cuMemAlloc_v2)(&address, 4096) != 0 || address >> 40 != 0x50u + (long)device) abort();
    DRIVER(cuMemFree_v2)(address);
  }
  DRIVER(cuMemAlloc_v2)(&kept, 1000 + (long)device);
  return NULL;
}

static void threads(void) {
  pthread_t all[8];
  for (long i = 0; i < 8; ++i) pthread_create(&all[i], NULL, one_thread, (void*)(i % 4));
  for (int i = 0; i < 8; ++i) pthread_join(all[i], NULL);
  printf("entered: %lu\n", fake_entered("cuMemAlloc_v2"));
}

static void forks(void) {
  Address memory = 0;
  use_device(0);
  SHOW(cuMemAlloc_v2, &memory, 1000);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    SHOW(cuMemAlloc_v2, &memory, 7); /* before its first operator, the child has no trace */
    torch_op(1);
    SHOW(cuMemAlloc_v2, &memory, 20);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child: %d\n", WEXITSTATUS(status));
  SHOW(cuMemAlloc_v2, &memory, 3000);
}

/* Nanoseconds for an allocation and its free, the best of many rounds. */
static void cost(void) {
  enum { ROUNDS = 200, CALLS = 500 };
  double best = 1e9;
  use_device(0);
  for (int round = 0; round < ROUNDS; ++round) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < CALLS; ++i) {
      Address address = 0;
      DRIVER(cuMemAlloc_v2)(&address, 4096);
      DRIVER(cuMemFree_v2)(address);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double ns = (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
    if (ns < best) best = ns;
  }
  printf("%.0f\n", best / CALLS);
}

/* ---- how it comes to the driver */

#ifndef DIRECT
static void* driver;

static void* by_symbol(const char* name) {
  return dlsym(driver, name);
}
static void* by_scope(const char* name) {
  return dlsym(RTLD_DEFAULT, name);
}
static void* by_version(const char* name) {
  return dlvsym(driver, name, "FAKE_1");
}

static int proc_version = 12040, proc_flags;

/* "cuMemAlloc_v2" is asked for as "cuMemAlloc". */
static const char* base_of(const char* name, char* base) {
  strcpy(base, name);
  char* suffix = strstr(base, "_v2");
  if (suffix == NULL) suffix = strstr(base, "_pt");
  if (suffix != NULL) *suffix = '\0';
  return base;
}

static void* by_first_proc(const char* name) {
  static int (*get)(const char*, void**, int, uint64_t);
  char base[64];
  void* function = NULL;
  if (get == NULL) get = dlsym(driver, "cuGetProcAddress");
  get(base_of(name, base), &function, proc_version, proc_flags);
  return function != NULL ? function : dlsym(driver, name);
}

static void* by_second_proc(const char* name) {
  static int (*get)(const char*, void**, int, uint64_t, int*);
  char base[64];
  int status = 0;
  void* function = NULL;
  if (get == NULL) {
    get = dlsym(driver, "cuGetProcAddress_v2");
    get("cuGetProcAddress", (void**)&get, 12000, 0, NULL); /* the driver gives itself, too */
  }
  get(base_of(name, base), &function, proc_version, proc_flags, &status);
  return function != NULL ? function : dlsym(driver, name);
}

static void find_functions(const char* way) {
  void* (*find)(const char*) = by_symbol;
  if (!strcmp(way, "scope")) find = by_scope;
  if (!strcmp(way, "version")) find = by_version;
  if (!strcmp(way, "proc1")) find = by_first_proc;
  if (!strncmp(way, "proc2", 5)) find = by_second_proc;
  proc_flags = !strcmp(way, "proc2-per-thread") ? 2 : 0;
  driver = dlopen("libcuda.so.1", find == by_scope ? RTLD_NOW | RTLD_GLOBAL : RTLD_LAZY);
  if (driver == NULL) {
    puts(dlerror());
    exit(1);
  }
#define FIND(name, parameters, arguments) p_##name = find(#name);
  FAKE_CALLS(FIND)
  cuDevicePrimaryCtxRetain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  cuCtxSetCurrent = dlsym(driver, "cuCtxSetCurrent");
  fake_fail = dlsym(driver, "fake_fail");
  fake_entered = dlsym(driver, "fake_entered");
  fake_refuse = dlsym(driver, "fake_refuse");
}

/* Away and here again, many times: a driver that is gone leaves room for the next. */
static void reload(void) {
  for (int i = 0; i < 10; ++i) {
    Address memory = 0;
    find_functions("symbol");
    use_device(0);
    SHOW(cuMemAlloc_v2, &memory, 100);
    SHOW(cuMemFree_v2, memory);
    dlclose(driver);
    /* something else in its place, so that it comes to lie elsewhere */
    malloc(1 << 22);
  }
}

/* A newer driver: its function of one name takes other arguments, that of another name is the one of old. */
static void future(void) {
  Address rows = 0;
  size_t pitch = 0;
  use_device(0);
  int (*get)(const char*, void**, int, uint64_t, int*) = dlsym(driver, "cuGetProcAddress_v2");
  int (*allocate)(Address*, size_t*, size_t, size_t, unsigned) = NULL;
  get("cuMemAlloc", (void**)&allocate, 99000, 0, NULL);
  printf("future: %d %d\n", allocate(&rows, &pitch, 100, 10, 4), (int)pitch);
  int (*release)(Address) = NULL;
  get("cuMemFree", (void**)&release, 99000, 0, NULL);
  printf("free: %d\n", release(rows));
  printf("missing: %d\n", get("cuNothing", (void**)&allocate, 12000, 0, NULL));
}
#endif

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  torch_op(1);
#ifndef DIRECT
  if (strcmp(argv[2], "reload")) find_functions(argv[1]);
#endif
  for (int i = 2; i < argc; ++i) {
    if (!strcmp(argv[i], "basic")) basic();
    if (!strcmp(argv[i], "copies")) copies();
    if (!strcmp(argv[i], "waits")) waits();
    if (!strcmp(argv[i], "virtual")) virtual_memory();
    if (!strcmp(argv[i], "pools")) pools();
    if (!strcmp(argv[i], "capture")) capture();
    if (!strcmp(argv[i], "captures")) captures();
    if (!strcmp(argv[i], "invalid-capture")) invalid_capture();
    if (!strcmp(argv[i], "refused")) refused();
    if (!strcmp(argv[i], "streams")) streams();
    if (!strcmp(argv[i], "failures")) failures();
    if (!strcmp(argv[i], "threads")) threads();
    if (!strcmp(argv[i], "fork")) forks();
    if (!strcmp(argv[i], "cost")) cost();
#ifndef DIRECT
    if (!strcmp(argv[i], "reload")) reload();
    if (!strcmp(argv[i], "future")) future();
#endif
  }
  return 0;
}
