/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a stub calls (os/site_stub.h): the system call of a site. A futex call is served, any other is made. All
 * registers keep their values, except those that a system call changes: rax, rcx and r11.
 *
 * Unwinding: the frame above is the function with the site, at the address behind the site's system call, with the
 * stack pointer as it was there. The stub has no frame.
 */
#if defined(__x86_64__)
        .text

#define RED_ZONE  128                   /* SBT_STUB_RED_ZONE */
#define SITE      21                    /* SBT_STUB_SITE */
#define SYS_futex 202
#define AT_ENTRY  (8 + RED_ZONE)        /* from the stack pointer to that of the site's function */

        /* The canonical frame address is the site's stack pointer. DW_CFA_expression of the return address: */
        /* *(CFA - AT_ENTRY) + SITE, from const2s, plus, deref, const1u, plus. */
        .macro  begin name
        .globl  \name
        .hidden \name
        .type   \name, @function
        .balign 64
\name:
        .cfi_startproc
        .cfi_def_cfa_offset AT_ENTRY
        .cfi_escape 0x10, 16, 8, 0x0b, (-AT_ENTRY) & 0xff, ((-AT_ENTRY) >> 8) & 0xff, 0x22, 0x06, 0x08, SITE, 0x22
        .byte   0xf3, 0x0f, 0x1e, 0xfa  /* endbr64: a legal target of an indirect call */
        cmpl    $SYS_futex, %eax
        jne     1f
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset rbp, -(AT_ENTRY + 8)
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        pushq   %rdi                    /* -8(%rbp) */
        pushq   %rsi
        pushq   %rdx
        pushq   %r8
        pushq   %r9
        pushq   %r10                    /* -48(%rbp) */
        .endm

        .macro  end name
        movq    -8(%rbp), %rdi
        movq    -16(%rbp), %rsi
        movq    -24(%rbp), %rdx
        movq    -32(%rbp), %r8
        movq    -40(%rbp), %r9
        movq    -48(%rbp), %r10
        leave
        .cfi_restore rbp
        .cfi_def_cfa rsp, AT_ENTRY
        ret
1:
        syscall
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .hidden abi_futex
        .hidden abi_site_wide_bytes
        .hidden abi_site_wide_mask

        /* For code that uses no vector registers but XMM0 to 15. */
        begin   abi_site_narrow
        subq    $256, %rsp
        andq    $-16, %rsp
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movaps  %xmm\i, 16 * \i(%rsp)
        .endr
        movq    %r10, %rcx
        call    abi_futex
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movaps  16 * \i(%rsp), %xmm\i
        .endr
        end     abi_site_narrow

        /* For any other code: the processor saves what there is, by the mask. The header of the area must be zero. */
        begin   abi_site_wide
        pushq   %rax                    /* -56(%rbp): later the result */
        movl    abi_site_wide_bytes(%rip), %ecx
        subq    %rcx, %rsp
        andq    $-64, %rsp
        xorl    %ecx, %ecx
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        movq    %rcx, 512 + 8 * \i(%rsp)
        .endr
        movl    abi_site_wide_mask(%rip), %eax
        xorl    %edx, %edx
        xsave64 (%rsp)
        movq    -24(%rbp), %rdx
        movq    %r10, %rcx
        call    abi_futex
        movq    %rax, -56(%rbp)
        movl    abi_site_wide_mask(%rip), %eax
        xorl    %edx, %edx
        xrstor64 (%rsp)
        movq    -56(%rbp), %rax
        end     abi_site_wide
#endif

        .section .note.GNU-stack, "", %progbits /* no executable stack, for any architecture */
