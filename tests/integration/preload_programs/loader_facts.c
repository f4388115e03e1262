/* Prints what the loader says in many situations. The same with and without devsan. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void find_sibling(void);
const char* next_strlen(void);

static const char* base(const char* path) {
  return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static const char* owner(void* address) {
  Dl_info info;
  return address != NULL && dladdr(address, &info) != 0 ? base(info.dli_fname) : "none";
}

static void error(const char* what) {
  const char* text = dlerror();
  printf("%s: %s; then ", what, text ? text : "no error");
  printf("%s\n", dlerror() ? "another" : "none");
}

static void* fails_alone(void* unused) {
  dlopen("libnot-of-this-thread.so", RTLD_NOW);
  error("in a thread");
  return unused;
}

static int reached;
int found_by_default(void) {
  return ++reached;
}

int main(void) {
  pthread_t thread;
  char origin[4096];
  struct link_map* map = NULL;

  find_sibling();
  printf("RTLD_NEXT from a library: %s\n", base(next_strlen()));
  printf("RTLD_NEXT from the program: %s\n", owner(dlsym(RTLD_NEXT, "strlen")));
  printf("RTLD_DEFAULT: %s\n", owner(dlsym(RTLD_DEFAULT, "strlen")));
  printf("own symbol: %s\n", owner(dlsym(dlopen(NULL, RTLD_NOW), "found_by_default")));
  printf("old version: %s\n", owner(dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.2.5")));
  printf("versions differ: %d\n", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.2.5") != dlsym(RTLD_DEFAULT, "memcpy"));

  printf("%p\n", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_99"));
  error("no such version");
  printf("%p\n", dlsym(RTLD_DEFAULT, "no_such_function"));
  error("no such symbol");
  printf("%p\n", dlopen("libno-such-library.so", RTLD_NOW));
  pthread_create(&thread, NULL, fails_alone, NULL);
  pthread_join(thread, NULL);
  error("no such library");
  printf("%p\n", dlopen("libm.so.6", 0));
  error("no mode");
  dlopen("libno-such-library.so", RTLD_NOW);
  dlsym(RTLD_DEFAULT, "strlen");
  error("after a success");
  errno = 77;
  dlsym(RTLD_DEFAULT, "strlen");
  printf("errno: %d\n", errno);

  void* math = dlopen("libm.so.6", RTLD_LAZY);
  printf("again the same handle: %d\n", math == dlopen("libm.so.6", RTLD_NOLOAD | RTLD_NOW));
  printf("origin: %s\n", dlinfo(math, RTLD_DI_ORIGIN, origin) == 0 ? origin : "none");
  printf("map: %s\n", dlinfo(math, RTLD_DI_LINKMAP, &map) == 0 ? base(map->l_name) : "none");
  printf("%d %s\n", dlinfo(math, 999, origin), dlerror());
  printf("cos: %s\n", owner(dlsym(math, "cos")));
  return 0;
}
