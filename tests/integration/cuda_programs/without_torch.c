/* Has nothing to do with torch. */
#include <stdio.h>

#include "fake_cuda.h"

int cuMemAlloc_v2(Address* out, size_t bytes);
int cuMemFree_v2(Address address);

int main(void) {
  Address memory = 0;
  Context context = NULL;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  printf("alloc: %d\n", cuMemAlloc_v2(&memory, 100));
  printf("free: %d\n", cuMemFree_v2(memory));
  return 0;
}
