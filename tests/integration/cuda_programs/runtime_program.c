/* Uses the runtime, shared or linked into it. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

int torch_op(int x);
int cudaMalloc(void** out, size_t bytes);
int cudaFree(void* address);
int cudaHostAlloc(void** out, size_t bytes, unsigned flags);
int cudaFreeHost(void* address);
int cudaMemcpy(void* target, const void* source, size_t bytes, int kind);
int cudaDeviceSynchronize(void);
void use_device(int device);

int main(void) {
  void *memory = NULL, *pinned = NULL;
  char host[16];
  torch_op(1);
  use_device(2);
  printf("malloc: %d\n", cudaMalloc(&memory, 5000));
  printf("host: %d\n", cudaHostAlloc(&pinned, 300, 0));
  printf("copy: %d\n", cudaMemcpy(memory, host, 16, 1));
  printf("copy: %d\n", cudaMemcpy(pinned, memory, 8, 2));
  printf("wait: %d\n", cudaDeviceSynchronize());
  printf("free: %d %d\n", cudaFreeHost(pinned), cudaFree(memory));
  return 0;
}
