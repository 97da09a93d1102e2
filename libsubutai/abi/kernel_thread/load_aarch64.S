/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* load.c for aarch64: enter, ask where to jump to, jump there with the caller's arguments and return address. */
#if defined(__aarch64__)
        .text

        .macro  passed_on name          /* at most three arguments: x0 to x2 */
        .globl  \name
        .type   \name, %function
        .balign 16
\name:
        .cfi_startproc
        hint    34                      /* bti c: a legal target of an indirect call */
        stp     x29, x30, [sp, #-48]!   /* frame pointer and return address */
        .cfi_adjust_cfa_offset 48
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp     x0, x1, [sp, #16]       /* the arguments, */
        str     x2, [sp, #32]           /* to be passed on */
        mov     x3, x30                 /* and the caller, */
        bl      sbt_\name\()_target     /* hidden: with the same arguments */
        mov     x16, x0                 /* where to, in a register that a jump to a bti c may use */
        ldr     x2, [sp, #32]           /* ... */
        ldp     x0, x1, [sp, #16]       /* ... */
        ldp     x29, x30, [sp], #48     /* ... */
        .cfi_adjust_cfa_offset -48
        .cfi_restore x29
        .cfi_restore x30
        br      x16                     /* which returns to the caller */
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .hidden sbt_dlopen_target
        .hidden sbt_dlmopen_target
        .hidden sbt_dlsym_target
        passed_on dlopen
        passed_on dlmopen
        .hidden sbt_dlvsym_target
        .hidden sbt_vfork_target
        passed_on dlsym
        passed_on dlvsym
        passed_on vfork
#endif

        .section .note.GNU-stack, "", %progbits /* no executable stack, for any architecture */
