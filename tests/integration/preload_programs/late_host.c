/* Gives fd 2 another file, then brings torch. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  (void)argc;
  dup2(open("stderr.txt", O_RDWR | O_CREAT, 0600), 2);
  fputs("the program's own\n", stderr);
  int (*entry)(int) = (int (*)(int))dlsym(dlopen(argv[1], RTLD_NOW), "entry");
  printf("op: %d\n", entry(1));
  return 0;
}
