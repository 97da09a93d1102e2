/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* regs.h for x86-64 with FSGSBASE. System V ABI: rbx, rbp, r12 to r15, MXCSR's and the x87's control bits survive;
   the exception flags belong to a thread by C11, 7.6.

   wrfsbase comes first. Before it begins, the processor ends all that is under way, and what follows goes on beside it:
   the reads of the floating-point words take 8 ns before it and 1 to 5 after it. Cache lines that are prefetched come
   meanwhile. docs/notes.md has the figures. */
#if defined(__x86_64__)
        .text

/* void *sbt_regs_switch(struct sbt_regs *from = rdi, const struct sbt_regs *to = rsi, void *value = rdx) */
        .globl  sbt_regs_switch
        .hidden sbt_regs_switch
        .type   sbt_regs_switch, @function
        .balign 16
        .weak   sbt_self                /* absent in unit tests: then this prefetches something else */
sbt_regs_switch:
        .cfi_startproc
        .byte   0xf3, 0x0f, 0x1e, 0xfa  /* endbr64: a legal target of an indirect call */
        movq    (%rsi), %r10            /* to->sp */
        prefetcht0 (%r10)               /* the other fiber's frame, */
        prefetcht0 64(%r10)             /* the frames of its callers, */
        prefetcht0 128(%r10)            /* ... */
        movq    8(%rsi), %rax           /* to->tls */
        movq    sbt_self@gottpoff(%rip), %r11
        prefetcht0 (%rax,%r11)          /* and its thread record come while wrfsbase waits */
        wrfsbase %rax                   /* from here on TLS is the other fiber's */
        pushq   %rbp                    /* callee-saved registers, */
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx                    /* in the order in which */
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12                    /* sbt_regs_make lays them out */
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13                    /* ... */
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14                    /* ... */
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15                    /* the last of the six */
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp                /* room for control and status words */
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)                  /* SSE: rounding, masks, flush to zero, exception flags */
        fnstcw  4(%rsp)                 /* x87: precision, rounding, masks */
        fnstsw  6(%rsp)                 /* and its exception flags */
        movq    %rsp, (%rdi)            /* from->sp: all that is needed to come back */
        movl    (%rsp), %ecx            /* the control words that are in force, */
        movw    4(%rsp), %r8w           /* to compare: loading them is slow */
        movb    6(%rsp), %r9b           /* x87 flags: the low six bits */
        movq    %r10, %rsp              /* and now the stack */
        cmpl    (%rsp), %ecx            /* SSE control word (and flags) the same? */
        je      1f                      /* then leave it */
        ldmxcsr (%rsp)                  /* else load the other fiber's */
1:      xorb    6(%rsp), %r9b           /* x87 exception flags */
        testb   $0x3f, %r9b             /* the same? */
        je      2f                      /* then leave them */
        subq    $32, %rsp               /* else, which is rare: room for the environment, the only way to set them */
        .cfi_adjust_cfa_offset 32
        fnstenv (%rsp)                  /* its status word is at 4; masks all exceptions, until fldenv */
        andb    $0xc0, 4(%rsp)          /* without this fiber's flags */
        movb    38(%rsp), %cl           /* the other fiber's */
        andb    $0x3f, %cl              /* alone */
        orb     %cl, 4(%rsp)            /* into the environment */
        fldenv  (%rsp)                  /* all else as it was */
        addq    $32, %rsp               /* the environment's room */
        .cfi_adjust_cfa_offset -32
2:      cmpw    4(%rsp), %r8w           /* x87 control word the same? */
        je      3f                      /* then leave it */
        fldcw   4(%rsp)                 /* else load it */
3:      addq    $8, %rsp                /* the control words' room */
        .cfi_adjust_cfa_offset -8
        popq    %r15                    /* what the other fiber had */
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14                    /* ... */
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13                    /* ... */
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12                    /* ... */
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx                    /* ... */
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp                    /* ... */
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        movq    %rdx, %rax              /* its call returns `value` */
        ret                             /* to where it called from */
        .cfi_endproc
        .size   sbt_regs_switch, . - sbt_regs_switch

/* What a new stack "returns" to: sbt_regs_make has put the entry function into rbx. */
        .globl  sbt_regs_entry
        .hidden sbt_regs_entry
        .type   sbt_regs_entry, @function
        .balign 16
sbt_regs_entry:
        .cfi_startproc
        .cfi_undefined rip              /* unwinders stop here: no function called this */
        movq    %rax, %rdi              /* value, the entry's argument */
        call    *%rbx                   /* aligned by sbt_regs_make */
        ud2                             /* it must not return */
        .cfi_endproc
        .size   sbt_regs_entry, . - sbt_regs_entry
#endif

        .section .note.GNU-stack, "", %progbits /* no executable stack, for any architecture */
