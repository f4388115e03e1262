/* What stands for torch's extension module. Prints when it is made. */
#include <stdio.h>

struct Object {
  long references;
  const void* type;
};
static const int type_of_modules;
extern const int PyModuleDef_Type;
static struct Object module = {1, &type_of_modules};
static struct Object definition = {1, &PyModuleDef_Type};

int torch_op(int x);

void* PyInit__C(void) {
  printf("made, op: %d\n", torch_op(1));
  return PHASES == 1 ? &module : &definition;
}
