/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/preempt.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/syscall.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include "os/arch.h"
#include "os/futex.h"
#include "os/real.h"
#include "switch/switch.h"

uint64_t rec_preempt_mark = 1;
volatile uint64_t rec_preempt_nowhere;

#ifdef RSEQ_SIG
#define OFF_THE_CORE_NS 1000 /* of a sleep that takes the thread off its core */

static bool tells;
static ptrdiff_t offset; /* of the area, relative to the thread pointer */

/*
 * A sequence in which no thread ever is, in the form that the kernel checks: the signature stands before the place
 * where an interrupted sequence would go on.
 */
static const uint32_t code[3] = {0, RSEQ_SIG, 0};
static struct rseq_cs sequences[2] __attribute__((aligned(2 * REC_PREEMPT_AGAIN))) = {
    {.post_commit_offset = sizeof code[0]}, {.post_commit_offset = sizeof code[0]}};
_Static_assert(sizeof sequences[0] == REC_PREEMPT_AGAIN, "the second one is the mark of profiles");

static char *thread_pointer(void) {
    char *self;
#if defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(self));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(self));
#endif
    return self;
}

/*
 * Since 2.35 the area is glibc's. Its symbols are looked up, not linked with, for the sake of older glibcs. No look-up
 * may fail.
 */
static bool find_area(void) {
    if (!sbt_real_is_2_35())
        return false;
    const ptrdiff_t *at = sbt_real_dlsym()(RTLD_DEFAULT, "__rseq_offset");
    const unsigned *size = sbt_real_dlsym()(RTLD_DEFAULT, "__rseq_size");
    if (at == NULL || size == NULL || *size == 0)
        return false;
    offset = *at;
    return true;
}

static volatile uint64_t *place(void) {
    struct rseq *area = (struct rseq *)(void *)(thread_pointer() + offset);
    bool registered = (int32_t)__atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED) >= 0;
    return registered ? (volatile uint64_t *)&area->rseq_cs : &rec_preempt_nowhere;
}

void rec_preempt_start(void) {
    if (sbt_switch_insisted || !find_area()) /* a switched thread has several areas; others that are recorded stay */
        return;
    volatile uint64_t *mine = place();
    if (mine == &rec_preempt_nowhere)
        return;
    for (unsigned i = 0; i < 2; i++) {
        sequences[i].start_ip = (uintptr_t)&code[0];
        sequences[i].abort_ip = (uintptr_t)&code[2];
    }
    rec_preempt_mark = (uintptr_t)&sequences[0];
    *mine = rec_preempt_mark;
    sbt_pause_ns(OFF_THE_CORE_NS); /* if the kernel clears marks, it has cleared this one */
    tells = *mine != rec_preempt_mark;
    *mine = 0;
}

volatile uint64_t *rec_preempt_place(void) {
    return tells ? place() : &rec_preempt_nowhere;
}
#else
void rec_preempt_start(void) {}

volatile uint64_t *rec_preempt_place(void) {
    return &rec_preempt_nowhere;
}
#endif
