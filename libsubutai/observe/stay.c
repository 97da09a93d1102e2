/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/stay.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/syscall.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include "core/arch.h"
#include "core/real.h"
#include "switch/switch.h"
#include "wait/futex.h"

uint64_t rec_stay_mark = 1;
volatile uint64_t rec_stay_nowhere;

#ifdef RSEQ_SIG
static bool tells;
static ptrdiff_t offset; /* of the area, from the thread pointer */

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

/* The area is glibc's since 2.35. Looked up, not linked with, for the sake of older ones; no look-up may fail. */
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
    return registered ? (volatile uint64_t *)&area->rseq_cs : &rec_stay_nowhere;
}

void rec_stay_start(void) {
    if (sbt_switch_wanted || !find_area()) /* a switched thread has other areas than its own */
        return;
    volatile uint64_t *mine = place();
    if (mine == &rec_stay_nowhere)
        return;
    sequence.start_ip = (uintptr_t)&code[0];
    sequence.abort_ip = (uintptr_t)&code[2];
    rec_stay_mark = (uintptr_t)&sequence;
    *mine = rec_stay_mark;
    sbt_pause_ns(1000);
    tells = *mine != rec_stay_mark;
    *mine = 0;
}

volatile uint64_t *rec_stay_place(void) {
    return tells ? place() : &rec_stay_nowhere;
}
#else
void rec_stay_start(void) {}

volatile uint64_t *rec_stay_place(void) {
    return &rec_stay_nowhere;
}
#endif
