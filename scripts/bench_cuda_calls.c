/* A library that allocates and frees device memory, linked to the driver as programs are that call it directly. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuMemAlloc_v2(uint64_t* address, size_t bytes);
int cuMemFree_v2(uint64_t address);

/* Nanoseconds for an allocation and its free, the best of many rounds. */
double bench_allocation(void) {
  enum { ROUNDS = 200, CALLS = 500 };
  void* context = NULL;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  double best = 1e18;
  for (int round = 0; round < ROUNDS; ++round) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < CALLS; ++i) {
      uint64_t address = 0;
      cuMemAlloc_v2(&address, 4096);
      cuMemFree_v2(address);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    if (ns < best) best = ns;
  }
  return best / CALLS;
}
