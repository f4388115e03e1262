#include <stdio.h>
#include <stdlib.h>
int torch_op(int x);
int main(int argc, char** argv) {
  (void)argv;
  char* bytes = malloc(10);
  printf("op: %d\n", torch_op(1));
  fflush(stdout);
  bytes[10 * argc] = 1;
  return bytes[0];
}
