/* Imports torch's extension as Python does: opens it and looks for the function that makes the module. */
#include <dlfcn.h>
#include <stdio.h>

const int PyModuleDef_Type;
static int main_interpreter, other_interpreter;
const char* Py_GetVersion(void) {
  return "3.11.2 (main) [GCC]";
}
void* PyInterpreterState_Main(void) {
  return &main_interpreter;
}
void* PyInterpreterState_Get(void) {
  return IN_MAIN ? &main_interpreter : &other_interpreter;
}

int main(int argc, char** argv) {
  (void)argc;
  void* extension = dlopen(argv[1], RTLD_NOW);
  void* (*make)(void) = (void* (*)(void))dlsym(extension, "PyInit__C");
  printf("module: %d\n", make() != NULL);
  printf("others: %d\n", dlsym(extension, "PyInit__Other") != NULL);
  return 0;
}
