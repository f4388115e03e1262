/* The functions that libdevsan.so puts before those of the C library, where the caller matters: glibc finds RUNPATH,
   $ORIGIN, the namespace and what comes after RTLD_NEXT by its return address. So nothing is called in its place. Each
   entry asks a C++ function which address to go on to, and jumps there with the stack and the arguments as they were.

   Beside hooks/torch_bridge/wrapper_entry.h this is the only file that knows the processor. None of these functions takes more than
   three arguments, and none takes one in a vector register; the choosing function gets them all, with the return address
   as the fourth. */

        .text

        .macro ENTRY name, chooser
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        /* Return address and three registers: the stack is aligned to 16 again. */
        movq    24(%rsp), %rcx
        call    \chooser
        movq    %rax, %r11
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *%r11
        .cfi_endproc
        .size   \name, . - \name
        .endm

        ENTRY   dlopen, devsan_choose_dlopen
        ENTRY   dlmopen, devsan_choose_dlmopen
        ENTRY   dlsym, devsan_choose_dlsym
        ENTRY   dlvsym, devsan_choose_dlvsym
        ENTRY   __cxa_atexit, devsan_choose_cxa_atexit

        .section .note.GNU-stack, "", @progbits
