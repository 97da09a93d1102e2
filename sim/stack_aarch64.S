/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* stack.h for aarch64. AAPCS64: x19 to x30 and the lower halves of v8 to v15 survive a call. */
#if defined(__aarch64__)
        .text

/* void sim_stack_swap(void **from = x0, void *to = x1) */
        .globl  sim_stack_swap
        .type   sim_stack_swap, %function
        .balign 16
sim_stack_swap:
        .cfi_startproc
        sub     sp, sp, #160            /* room for twenty, as sim_stack_new lays them out */
        .cfi_adjust_cfa_offset 160
        stp     x19, x20, [sp]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x2, sp
        str     x2, [x0]                /* all that is needed to come back */
        mov     sp, x1                  /* the other stack, with the same layout */
        ldp     x19, x20, [sp]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #160
        .cfi_adjust_cfa_offset -160
        ret                             /* to where it called from */
        .cfi_endproc
        .size   sim_stack_swap, . - sim_stack_swap

/* What a new stack "returns" to: sim_stack_new has put entry and argument into x19 and x20. */
        .globl  sim_stack_entry
        .type   sim_stack_entry, %function
        .balign 16
sim_stack_entry:
        .cfi_startproc
        .cfi_undefined x30              /* unwinders stop here: no function called this */
        mov     x0, x20                 /* the entry's argument */
        blr     x19
        brk     #1                      /* it must not return */
        .cfi_endproc
        .size   sim_stack_entry, . - sim_stack_entry
#endif

        .section .note.GNU-stack, "", %progbits /* no executable stack, for any architecture */
