// Where a wrapper begins. Two of three operators are called by another one, and all that their wrapper does is to pass
// them on. In C++ that costs more than the question whether to: arguments that lie on the stack would have to be copied
// for the call. A jump leaves them where they are.
//
// Of the hooks this is the only file that knows the processor.
#pragma once

#include <cstddef>

#include "hooks/inprocess/common/thread_state.h"

#if !defined(__x86_64__)
#error "hooks/torch_bridge/wrapper_entry.h has no entry for this processor"
#endif

namespace devsan::hooks {

// entry(), called with the arguments of `Real`, goes on to `Real` where is_nested() (call.h) holds of the calling
// thread, to `Outermost` otherwise. That one returns to the caller, too.
template <auto Real, auto Outermost>
struct WrapperEntry {
  // Registers that neither hold an argument nor have to be kept: rax, r10, r11.
  // Within one cache line each: an operator is seldom called so often that its wrapper stays in the cache.
  [[gnu::naked, gnu::aligned(64)]] static void entry() {
    asm("movq devsan_thread_block@gottpoff(%%rip), %%rax\n\t"
        "cmpl $0, %%fs:%c[depth](%%rax)\n\t"
        "je 1f\n\t"
        "movq %%fs:%c[frame_word](%%rax), %%r10\n\t"
        "movq (%%r10), %%r10\n\t"
        "cmpq %%fs:%c[frame](%%rax), %%r10\n\t"
        "jne 1f\n\t"
        "jmp *%c[real](%%rip)\n"
        "1:\n\t"
        "jmp %c[outermost]"
        :
        : [depth] "i"(offsetof(ThreadState, depth)),
          [frame_word] "i"(offsetof(ThreadState, outer) + offsetof(OuterCall, frame_word)),
          [frame] "i"(offsetof(ThreadState, outer) + offsetof(OuterCall, frame)), [real] "i"(&real),
          [outermost] "i"(Outermost));
  }

 private:
  inline static constexpr auto real = Real;  // a word that the loader fills, since `Real` is another library's
};
static_assert(sizeof(ThreadState::depth) == 4);

}  // namespace devsan::hooks
