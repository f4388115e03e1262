/* Hooks for the real torch, made without its headers: add.Tensor goes on to the real operator and is counted. */
#include <stdint.h>

struct Replacement {
  void* real;
  void* wrapper;
};
struct HookTable {
  uint32_t abi;
  uint32_t count;
  const struct Replacement* replacements;
};

#define ADD "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"
extern void real_add(void) __asm__(ADD);
extern void counted_add(void) __attribute__((visibility("hidden")));

#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN const struct Replacement table[] = {{(void*)&real_add, (void*)&counted_add}};
static const struct HookTable hooks = {1, 1, table};
HIDDEN volatile long counter;
extern volatile long calls __attribute__((alias("counter"))); /* what the test reads */

__asm__(
    ".text\n"
    "counted_add: lock incq counter(%rip)\n"
    "jmp *table(%rip)\n");

const struct HookTable* devsan_hooks_attach(const void* services) {
  (void)services;
  return &hooks;
}
