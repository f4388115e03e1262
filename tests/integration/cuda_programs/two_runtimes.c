/* Linked with one runtime, and a plugin of its brings another: each must be given its own calls. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int torch_op(int x);
int cudaMalloc(void** out, size_t bytes);
int runtime_entered(void);
void use_device(int device);

int main(void) {
  void* memory = NULL;
  torch_op(1);
  use_device(0);
  void* other = dlopen("libcudart.so.11", RTLD_NOW | RTLD_LOCAL);
  int (*other_malloc)(void**, size_t) = dlsym(other, "cudaMalloc");
  int (*other_entered)(void) = dlsym(other, "runtime_entered");
  printf("own: %d\n", cudaMalloc(&memory, 12));
  printf("other: %d\n", other_malloc(&memory, 11));
  printf("entered: %d %d\n", runtime_entered(), other_entered());
  return 0;
}
