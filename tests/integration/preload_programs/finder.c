/* Opens a library that only this object's own search path leads to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int early_found;

/* Runs before the constructor of a preloaded library. */
__attribute__((constructor)) static void begin(void) {
  early_found = dlsym(RTLD_DEFAULT, "malloc") != NULL;
}

static void show(const char* how, void* handle) {
  int (*sibling)(void) = handle ? (int (*)(void))dlsym(handle, "sibling") : NULL;
  printf("%s: %d %s\n", how, sibling ? sibling() : -1, handle ? "" : dlerror());
}

void find_sibling(void) {
  Lmid_t name_space = -1;
  printf("early: %d\n", early_found);
  show("by search path", dlopen("libsibling.so", RTLD_NOW));
  show("by $ORIGIN", dlopen("$ORIGIN/below/libsibling.so", RTLD_LAZY));
  void* apart = dlmopen(LM_ID_NEWLM, "libsibling.so", RTLD_NOW);
  show("in a namespace of its own", apart);
  if (apart != NULL) dlinfo(apart, RTLD_DI_LMID, &name_space);
  printf("namespace: %ld\n", (long)name_space);
}

/* What comes after this object, not after the one that the program has preloaded. */
const char* next_strlen(void) {
  Dl_info info;
  void* next = dlsym(RTLD_NEXT, "strlen");
  return next != NULL && dladdr(next, &info) != 0 ? info.dli_fname : "none";
}
unsigned long strlen_of_finder(void) {
  return 0;
}
