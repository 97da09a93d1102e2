/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The part of regs.h that is not assembly: new stacks, and whether this machine can switch. */
#include "switch/regs.h"

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "os/initial.h"

extern void sbt_regs_entry(void);

#if defined(__x86_64__)

/* As sbt_regs_switch pushes it, lowest address first. */
struct frame {
    uint32_t mxcsr;
    uint16_t x87_control, x87_status;
    uint64_t r15, r14, r13, r12, rbx, rbp, rip;
};
_Static_assert(sizeof(struct frame) == 64, "layout of the frame that the assembly pushes");

#define HWCAP2_HAS_FSGSBASE 2

static void frame_init(struct frame *frame, void (*entry)(void *)) {
    __asm__("stmxcsr %0" : "=m"(frame->mxcsr));
    __asm__("fnstcw %0" : "=m"(frame->x87_control));
    frame->rbx = (uint64_t)(uintptr_t)entry;
    frame->rip = (uint64_t)(uintptr_t)sbt_regs_entry;
}

const char *sbt_regs_unusable(void) {
    uint64_t shadow_stack = 0;
    __asm__(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(shadow_stack)); /* rdsspq %rax: does nothing without one */
    return (sbt_auxiliary(AT_HWCAP2, 0) & HWCAP2_HAS_FSGSBASE) == 0 ? "the kernel or processor lacks FSGSBASE"
           : shadow_stack != 0                                      ? "the process has shadow stacks"
                                                                    : NULL;
}

#else

struct frame {
    uint64_t x29, x30, x19, x20_to_x28[9];
    uint64_t d8_to_d15[8];
    uint64_t fpcr, fpsr;
};
_Static_assert(sizeof(struct frame) == 176, "layout of the frame that the assembly pushes");

#define HWCAP_HAS_GCS (1ul << 32)  /* a guarded control stack may be in force */
#define HWCAP2_HAS_SME (1ul << 23) /* ZA may be in use across a call, and the next function that uses it saves it */

static void frame_init(struct frame *frame, void (*entry)(void *)) {
    __asm__("mrs %0, fpcr" : "=r"(frame->fpcr));
    frame->x19 = (uint64_t)(uintptr_t)entry;
    frame->x30 = (uint64_t)(uintptr_t)sbt_regs_entry;
}

const char *sbt_regs_unusable(void) {
    return (sbt_auxiliary(AT_HWCAP, 0) & HWCAP_HAS_GCS) != 0     ? "the processor has guarded control stacks"
           : (sbt_auxiliary(AT_HWCAP2, 0) & HWCAP2_HAS_SME) != 0 ? "the processor has SME (its state is not switched)"
                                                                 : NULL;
}

#endif

void sbt_regs_make(struct sbt_regs *regs, void *stack, size_t bytes, void (*entry)(void *value), void *tls) {
    /* Both architectures want 16 bytes; sbt_regs_entry is entered with the frame popped, on that boundary. */
    uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)15;
    struct frame *frame = (struct frame *)top - 1;
    memset(frame, 0, sizeof *frame);
    frame_init(frame, entry);
    regs->sp = frame;
    regs->tls = tls;
}
