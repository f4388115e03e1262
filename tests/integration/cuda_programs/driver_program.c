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
static Stream (*p_fake_stream)(void);
static void (*p_fake_capture)(Stream, int);
#define cuDevicePrimaryCtxRetain p_cuDevicePrimaryCtxRetain
#define cuCtxSetCurrent p_cuCtxSetCurrent
#define fake_fail p_fake_fail
#define fake_entered p_fake_entered
#define fake_stream p_fake_stream
#define fake_capture p_fake_capture
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
  Stream stream = fake_stream();
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
  Stream stream = fake_stream();
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
  Stream stream = fake_stream();
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
  Stream stream = fake_stream();
  DRIVER(cuMemHostAlloc)((void**)&pinned, 64, 0);
  DRIVER(cuMemAllocAsync)(&memory, 512, stream);
  fake_capture(stream, 1);
  SHOW(cuMemAllocAsync, &in_graph, 1024, stream);
  SHOW(cuMemFreeAsync, memory, stream);
  SHOW(cuMemcpyHtoDAsync_v2, memory, pinned, 32, stream);
  SHOW(cuMemcpyDtoHAsync_v2, event, memory, 1, stream); /* pageable, but nobody waits for a node of a graph */
  SHOW(cuEventRecord, event, stream);
  fake_capture(stream, 0);
  SHOW(cuMemFreeAsync, memory, stream);
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
  fake_stream = dlsym(driver, "fake_stream");
  fake_capture = dlsym(driver, "fake_capture");
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
