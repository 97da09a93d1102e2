/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* stack.h for x86-64. System V ABI: rbx, rbp and r12 to r15 survive a call. */
#if defined(__x86_64__)
        .text

/* void sim_stack_swap(void **from = rdi, void *to = rsi) */
        .globl  sim_stack_swap
        .type   sim_stack_swap, @function
        .balign 16
sim_stack_swap:
        .cfi_startproc
        pushq   %rbp                    /* in the order in which */
        .cfi_adjust_cfa_offset 8
        pushq   %rbx                    /* sim_stack_new lays them out */
        .cfi_adjust_cfa_offset 8
        pushq   %r12                    /* ... */
        .cfi_adjust_cfa_offset 8
        pushq   %r13                    /* ... */
        .cfi_adjust_cfa_offset 8
        pushq   %r14                    /* ... */
        .cfi_adjust_cfa_offset 8
        pushq   %r15                    /* the last of the six */
        .cfi_adjust_cfa_offset 8
        movq    %rsp, (%rdi)            /* all that is needed to come back */
        movq    %rsi, %rsp              /* the other stack, with the same layout */
        popq    %r15                    /* ... */
        .cfi_adjust_cfa_offset -8
        popq    %r14                    /* ... */
        .cfi_adjust_cfa_offset -8
        popq    %r13                    /* ... */
        .cfi_adjust_cfa_offset -8
        popq    %r12                    /* ... */
        .cfi_adjust_cfa_offset -8
        popq    %rbx                    /* ... */
        .cfi_adjust_cfa_offset -8
        popq    %rbp                    /* ... */
        .cfi_adjust_cfa_offset -8
        ret                             /* to where it called from */
        .cfi_endproc
        .size   sim_stack_swap, . - sim_stack_swap

/* What a new stack "returns" to: sim_stack_new has put entry and argument into rbx and r12. */
        .globl  sim_stack_entry
        .type   sim_stack_entry, @function
        .balign 16
sim_stack_entry:
        .cfi_startproc
        .cfi_undefined rip              /* unwinders stop here: no function called this */
        movq    %r12, %rdi              /* the entry's argument */
        subq    $8, %rsp                /* the word above the return address: a call keeps the stack aligned */
        call    *%rbx
        ud2                             /* it must not return */
        .cfi_endproc
        .size   sim_stack_entry, . - sim_stack_entry
#endif

        .section .note.GNU-stack, "", %progbits /* no executable stack, for any architecture */
