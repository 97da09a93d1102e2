/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* load.c for x86-64: enter, ask where to jump to, jump there with the caller's arguments and return address. */
#if defined(__x86_64__)
        .text

        .macro  passed_on name          /* at most three arguments: rdi, rsi, rdx */
        .globl  \name
        .type   \name, @function
        .balign 16
\name:
        .cfi_startproc
        .byte   0xf3, 0x0f, 0x1e, 0xfa  /* endbr64: a legal target of an indirect call */
        pushq   %rdi                    /* the arguments, */
        .cfi_adjust_cfa_offset 8
        pushq   %rsi                    /* to be passed on; */
        .cfi_adjust_cfa_offset 8
        pushq   %rdx                    /* three and the return address keep the stack aligned */
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rcx          /* and the caller, */
        call    sbt_\name\()_target     /* hidden: with the same arguments */
        popq    %rdx                    /* ... */
        .cfi_adjust_cfa_offset -8
        popq    %rsi                    /* ... */
        .cfi_adjust_cfa_offset -8
        popq    %rdi                    /* ... */
        .cfi_adjust_cfa_offset -8
        jmp     *%rax                   /* which returns to the caller */
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
