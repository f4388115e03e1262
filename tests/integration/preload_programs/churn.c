/* Threads that load and unload plugins while others call through theirs: `churn ROUNDS PLUGIN…`. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long rounds;
static long calls, hooked, wrong;

static void count(int result) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (result == 1001) __atomic_add_fetch(&hooked, 1, __ATOMIC_RELAXED);
  if (result != 1001 && result != 1) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static void* churn(void* path) {
  for (long i = 0; i < rounds; ++i) {
    void* plugin = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
    int (*entry)(int) = (int (*)(int))dlsym(plugin, "entry");
    count(entry(1));
    dlclose(plugin);
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[16];
  rounds = atol(argv[1]);
  for (int i = 2; i < argc; ++i) pthread_create(&threads[i], NULL, churn, argv[i]);
  for (int i = 2; i < argc; ++i) pthread_join(threads[i], NULL);
  printf("calls %ld, wrong %ld, most hooked %d\n", calls, wrong, hooked * 10 > calls * 9);
  return 0;
}
