/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* regs.h for aarch64. AAPCS64: x19 to x30, the low halves of v8 to v15 and FPCR survive a call. */
#if defined(__aarch64__)
        .text

/* void *sbt_regs_switch(struct sbt_regs *from = x0, const struct sbt_regs *to = x1, void *value = x2) */
        .globl  sbt_regs_switch
        .hidden sbt_regs_switch
        .type   sbt_regs_switch, %function
        .balign 16
sbt_regs_switch:
        .cfi_startproc
        hint    34                      /* bti c: a legal target of an indirect call */
        stp     x29, x30, [sp, #-176]!  /* frame pointer and return address; room for all */
        .cfi_adjust_cfa_offset 176
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp     x19, x20, [sp, #16]     /* callee-saved registers */
        .cfi_rel_offset x19, 16
        .cfi_rel_offset x20, 24
        stp     x21, x22, [sp, #32]     /* ... */
        .cfi_rel_offset x21, 32
        .cfi_rel_offset x22, 40
        stp     x23, x24, [sp, #48]     /* ... */
        .cfi_rel_offset x23, 48
        .cfi_rel_offset x24, 56
        stp     x25, x26, [sp, #64]     /* ... */
        .cfi_rel_offset x25, 64
        .cfi_rel_offset x26, 72
        stp     x27, x28, [sp, #80]     /* ... */
        .cfi_rel_offset x27, 80
        .cfi_rel_offset x28, 88
        stp     d8, d9, [sp, #96]       /* their low halves only: the rest is the caller's */
        stp     d10, d11, [sp, #112]    /* ... */
        stp     d12, d13, [sp, #128]    /* ... */
        stp     d14, d15, [sp, #144]    /* ... */
        mrs     x9, fpcr                /* rounding, flush to zero, traps */
        mrs     x12, fpsr               /* exception flags: a thread's own by C11, 7.6 */
        stp     x9, x12, [sp, #160]     /* beside the registers */
        mov     x10, sp                 /* sp cannot be stored itself */
        str     x10, [x0]               /* from->sp: all that is needed to come back */
        ldp     x10, x11, [x1]          /* to->sp, to->tls */
        msr     tpidr_el0, x11          /* from here on TLS is the other fiber's */
        mov     sp, x10                 /* and now the stack */
        ldp     x10, x13, [sp, #160]    /* its FPCR, FPSR */
        cmp     x9, x10                 /* the same? */
        b.eq    1f                      /* then leave it: writing is slow */
        msr     fpcr, x10               /* else load it */
1:      cmp     x12, x13                /* the flags the same? */
        b.eq    2f                      /* then leave them */
        msr     fpsr, x13               /* else load them */
2:      ldp     d14, d15, [sp, #144]    /* what the other fiber had */
        ldp     d12, d13, [sp, #128]    /* ... */
        ldp     d10, d11, [sp, #112]    /* ... */
        ldp     d8, d9, [sp, #96]       /* ... */
        ldp     x27, x28, [sp, #80]     /* ... */
        ldp     x25, x26, [sp, #64]     /* ... */
        ldp     x23, x24, [sp, #48]     /* ... */
        ldp     x21, x22, [sp, #32]     /* ... */
        ldp     x19, x20, [sp, #16]     /* ... */
        ldp     x29, x30, [sp], #176    /* frame pointer and return address */
        .cfi_adjust_cfa_offset -176
        mov     x0, x2                  /* its call returns `value` */
        ret                             /* to where it called from */
        .cfi_endproc
        .size   sbt_regs_switch, . - sbt_regs_switch

/* What a new stack "returns" to: sbt_regs_make has put the entry function into x19. */
        .globl  sbt_regs_entry
        .hidden sbt_regs_entry
        .type   sbt_regs_entry, %function
        .balign 16
sbt_regs_entry:
        .cfi_startproc
        .cfi_undefined x30              /* unwinders stop here: no function called this */
        hint    36                      /* bti j: reached by ret, which needs none; harmless */
        blr     x19                     /* value is in x0, the entry's argument, already */
        brk     #1                      /* it must not return */
        .cfi_endproc
        .size   sbt_regs_entry, . - sbt_regs_entry
#endif

        .section .note.GNU-stack, "", %progbits /* no executable stack, for any architecture */
