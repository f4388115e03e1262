// Hooks for the real torch, made without its headers: add.Tensor goes on to the real operator and is counted.
#include "preload/hooks_abi.h"

#define ADD "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"
#define HIDDEN __attribute__((visibility("hidden")))

extern "C" {
void real_add() __asm__(ADD);
void counted_add() HIDDEN;
HIDDEN volatile long counter;
extern volatile long calls __attribute__((alias("counter")));  // what the test reads
extern HIDDEN const devsan::Replacement table[];
}

const devsan::Replacement table[] = {{reinterpret_cast<void*>(&real_add), reinterpret_cast<void*>(&counted_add)}};

__asm__(
    ".text\n"
    "counted_add: lock incq counter(%rip)\n"
    "jmp *table(%rip)\n");

extern "C" const devsan::HookTable* devsan_hooks_attach(const devsan::HostServices*) {
  static constexpr devsan::HookTable hooks = {devsan::kHooksAbi, 1, table, nullptr};
  return &hooks;
}
