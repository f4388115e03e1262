/* Preloaded: counts allocations, as many tools do, and finds the real function at the first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* (*real_malloc)(size_t);
static unsigned long calls;

void* malloc(size_t size) {
  if (real_malloc == NULL) real_malloc = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  ++calls;
  return real_malloc(size);
}

__attribute__((destructor)) static void end(void) {
  fprintf(stderr, "malloc was called: %d\n", calls > 0);
}
