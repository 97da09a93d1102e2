/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/stay.h"

#include <stddef.h>

#include <sys/syscall.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include "core/arch.h"
#include "switch/switch.h"
#include "wait/futex.h"

uint64_t rec_stay_mark = 1;
volatile uint64_t rec_stay_nowhere;

#ifdef RSEQ_SIG
#pragma weak __rseq_offset
#pragma weak __rseq_size

static bool tells;

/*
 * A sequence that nobody is ever in, as the kernel wants to see one: the signature stands before the place where an
 * interrupted one would go on.
 */
static const uint32_t code[3] = {0, RSEQ_SIG, 0};
static struct rseq_cs sequence = {.post_commit_offset = sizeof code[0]};

static char *thread_pointer(void) {
    char *self;
#if defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(self));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(self));
#endif
    return self;
}

static volatile uint64_t *place_of_glibc(void) {
    if (&__rseq_offset == NULL || &__rseq_size == NULL || __rseq_size == 0)
        return &rec_stay_nowhere;
    struct rseq *area = (struct rseq *)(void *)(thread_pointer() + __rseq_offset);
    bool registered = (int32_t)__atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED) >= 0;
    return registered ? (volatile uint64_t *)&area->rseq_cs : &rec_stay_nowhere;
}

void rec_stay_start(void) {
    volatile uint64_t *place = place_of_glibc();
    if (place == &rec_stay_nowhere || sbt_switch_wanted) /* a switched thread has other areas than its own */
        return;
    sequence.start_ip = (uintptr_t)&code[0];
    sequence.abort_ip = (uintptr_t)&code[2];
    rec_stay_mark = (uintptr_t)&sequence;
    *place = rec_stay_mark;
    sbt_pause_ns(1000);
    tells = *place != rec_stay_mark;
    *place = 0;
}

volatile uint64_t *rec_stay_place(void) {
    return tells ? place_of_glibc() : &rec_stay_nowhere;
}
#else
void rec_stay_start(void) {}

volatile uint64_t *rec_stay_place(void) {
    return &rec_stay_nowhere;
}
#endif
