// Functions that follow the addresses they are given, as test_sim_guard.py loads them without torch.
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

__attribute__((noinline)) float read_first(const float* values) {
  return *(volatile const float*)values;
}

__attribute__((noinline)) void write_first(float* values) {
  *(volatile float*)values = 7;
}

__attribute__((noinline)) void read_all(float* to, const float* from, size_t count) {
  memcpy(to, from, count * sizeof *from);
}

static sigjmp_buf back;

static void leave(int signal) {
  siglongjmp(back, signal);
}

// A program's own handler that recovers.
void recover_from_faults(void) {
  struct sigaction action = {.sa_handler = leave};
  sigaction(SIGSEGV, &action, NULL);
}

int can_be_read(const float* values) {
  if (sigsetjmp(back, 1) != 0) return 0;
  read_first(values);
  return 1;
}
