/* What stands for torch: an operator, and static initialisers that are slow to be done. */
#include <dlfcn.h>
#include <stdlib.h>

int torch_ready;
int torch_neighbour_initialising; /* set by beside.c */

static void at_end(void* unused) {
  (void)unused;
}
extern int __cxa_atexit(void (*)(void*), void*, void*);
extern void* __dso_handle;

__attribute__((constructor)) static void initialise(void) {
  /* What libraries do while they initialise: register destructors, look for symbols and for plugins. */
  __cxa_atexit(at_end, NULL, &__dso_handle);
  dlsym(RTLD_DEFAULT, "malloc");
  dlclose(dlopen("libm.so.6", RTLD_NOW));
  torch_ready = 1;
}

int torch_op(int x) {
  return x;
}
/* Through the library's own table, as libtorch calls its operators. */
int torch_nested(int x) {
  return torch_op(x);
}
