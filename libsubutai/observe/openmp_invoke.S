/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * void rec_openmp_invoke(microtask, int *thread, int *in_team, void **args, long n): microtask(thread, in_team, args[0],
 * ..., args[n - 1]). No C compiler writes a call with a number of arguments that is known only then. `args` has room for
 * eight: the registers are filled from it in any case.
 */
#if defined(__x86_64__)
        .text
        .globl  rec_openmp_invoke
        .hidden rec_openmp_invoke
        .type   rec_openmp_invoke, @function
        .balign 16
rec_openmp_invoke:
        .cfi_startproc
        .byte   0xf3, 0x0f, 0x1e, 0xfa  /* endbr64 */
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        movq    %rdi, %rax              /* the function */
        movq    %rcx, %r10              /* args */
        movq    %rsi, %rdi
        movq    %rdx, %rsi
        leaq    -4(%r8), %rcx           /* so many of them lie on the stack, which stays a multiple of 16 */
        testq   %rcx, %rcx
        jle     2f
        leaq    1(%rcx), %rdx
        andq    $-2, %rdx
        shlq    $3, %rdx
        subq    %rdx, %rsp
1:      movq    24(%r10, %rcx, 8), %rdx /* args[4 + i - 1] */
        movq    %rdx, -8(%rsp, %rcx, 8)
        decq    %rcx
        jnz     1b
2:      movq    (%r10), %rdx
        movq    8(%r10), %rcx
        movq    16(%r10), %r8
        movq    24(%r10), %r9
        call    *%rax
        leave
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   rec_openmp_invoke, . - rec_openmp_invoke
#elif defined(__aarch64__)
        .text
        .globl  rec_openmp_invoke
        .hidden rec_openmp_invoke
        .type   rec_openmp_invoke, %function
        .balign 16
rec_openmp_invoke:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        mov     x9, x0                  /* the function */
        mov     x10, x3                 /* args */
        mov     x0, x1
        mov     x1, x2
        subs    x11, x4, #6             /* so many of them lie on the stack, which stays a multiple of 16 */
        b.le    2f
        add     x12, x11, #1
        and     x12, x12, #-2
        sub     sp, sp, x12, lsl #3
1:      sub     x11, x11, #1
        add     x13, x11, #6
        ldr     x14, [x10, x13, lsl #3]
        str     x14, [sp, x11, lsl #3]
        cbnz    x11, 1b
2:      ldp     x2, x3, [x10]
        ldp     x4, x5, [x10, #16]
        ldp     x6, x7, [x10, #32]
        blr     x9
        mov     sp, x29
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa sp, 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   rec_openmp_invoke, . - rec_openmp_invoke
#endif
        .section .note.GNU-stack, "", %progbits
