/* Preloaded: another tool that stands before dlopen and dlsym. Tells what it sees, and passes it on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
  if (real == NULL) real = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (strcmp(name, "entry") == 0) fprintf(stderr, "a tool saw %s\n", name);
  return real(handle, name);
}
