/* Knows nothing of torch. `host symbol LIB` asks for the plugin's entry; `host register LIB` waits to be told. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int (*registered)(int);
void register_plugin(int (*entry)(int)) {
  registered = entry;
}

int main(int argc, char** argv) {
  void* plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    puts(dlerror());
    return 1;
  }
  if (!strcmp(argv[1], "symbol")) registered = (int (*)(int))dlsym(plugin, "entry");
  printf("op: %d\n", registered(1));
  int (*nested)(int) = (int (*)(int))dlsym(plugin, "nested");
  if (nested != NULL) printf("nested: %d\n", nested(1));
  return 0;
}
