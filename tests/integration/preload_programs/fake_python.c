/* Has the function by which devsan knows a Python, and its version text from the outside. */
#include <stdio.h>
int torch_op(int x);
const char* Py_GetVersion(void) {
  return VERSION;
}
int main(void) {
  printf("op: %d\n", torch_op(1));
  return 0;
}
