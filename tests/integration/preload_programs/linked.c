/* Linked with the toy torch. Does one thing after the other, as its arguments say, and prints what comes of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
int torch_op(int x);
int torch_nested(int x);

static void in_child(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  printf("child: %d\n", WEXITSTATUS(status));
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 1; i < argc; ++i) {
    const char* what = argv[i];
    if (!strcmp(what, "op")) printf("op: %d\n", torch_op(1));
    if (!strcmp(what, "nested")) printf("nested: %d\n", torch_nested(1));
    if (!strcmp(what, "exit")) exit(3);
    if (!strcmp(what, "_exit")) _exit(4);
    if (!strcmp(what, "_Exit")) _Exit(4);
    if (!strcmp(what, "quick_exit")) quick_exit(5);
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "execv")) execv("/bin/echo", (char*[]){"echo", "executed", NULL});
    if (!strcmp(what, "execl")) execl("/bin/echo", "echo", "a", "b", "c", "d", "e", "f", "g", "h", (char*)NULL);
    if (!strcmp(what, "execlp")) execlp("echo", "echo", "found", (char*)NULL);
    if (!strcmp(what, "execle")) execle("/usr/bin/env", "env", (char*)NULL, (char*[]){"ONLY=this", NULL});
    if (!strcmp(what, "execve-none")) printf("execve: %d %d\n", execve("/none", argv, environ), errno);
    if (!strcmp(what, "execlp-none")) printf("execlp: %d %d\n", execlp("no-such-program", "x", (char*)NULL), errno);
    if (!strcmp(what, "fexecve")) fexecve(open("/bin/echo", O_RDONLY), (char*[]){"echo", "by fd", NULL}, environ);
    if (!strcmp(what, "fork")) {
      const pid_t child = fork();
      if (child == 0) _exit(torch_op(1) > 1000 ? 11 : 12);
      in_child(child);
    }
    if (!strcmp(what, "idle-fork")) {
      const pid_t child = fork();
      if (child == 0) exit(13);
      in_child(child);
    }
    if (!strcmp(what, "vfork")) {
      const pid_t child = vfork();
      if (child == 0) {
        execl("/none", "none", (char*)NULL);
        _exit(14);
      }
      in_child(child);
    }
    if (!strcmp(what, "self")) { /* the same program in a new process, in another directory */
      const pid_t child = fork();
      if (child == 0) {
        if (chdir("/") != 0) _exit(1);
        execl("/proc/self/exe", "linked", "op", (char*)NULL);
      }
      in_child(child);
    }
    if (!strcmp(what, "late")) { /* a plugin that comes after torch */
      void* plugin = dlopen(argv[++i], RTLD_NOW);
      int (*entry)(int) = plugin ? (int (*)(int))dlsym(plugin, "entry") : NULL;
      printf("late: %d\n", entry ? entry(1) : -1);
    }
  }
  return 0;
}
