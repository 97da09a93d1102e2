/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * futex(2), observed: by syscall(), and by libraries that are led to abi_futex. Waits, and wake-ups as signals: a
 * wake-up that woke one thread ended one wait, a wake-up that woke more any number, and one that found no thread none.
 * How many it woke is known when it has returned. A wait that returns before that may be given a wake-up that woke
 * another thread.
 * A requeue is a wake-up; a thread that it moved is woken by a wake-up of another word, which is not known to be its.
 */
#include <errno.h>
#include <linux/futex.h>

#include "abi/futex.h"
#include "observe/observe.h"
#include "observe/openmp.h"

/* A wait under way. */
struct waiting {
    struct rec_call c;
    const void *word;
};

static void cancelled(void *waiting) {
    struct waiting *o = waiting;
    if (rec.profile)
        rec_profile_end_wait(o->word);
    rec_leave(&o->c, ECANCELED);
}

static long wait_observed(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t timeout, uint32_t bits) {
    struct waiting o = {.word = word};
    struct rec_call *c = &o.c;
    long r;
    rec_enter(c, SBT_TRACE_FUTEX_WAIT, SBT_TRACE_FUTEX, word, caller);
    rec_signal_begin_wait(c);
    c->event.size = val;
    if (rec_profiles())
        rec_profile_begin_wait(word, c->thread != NULL ? c->begin_ns : 0);
    pthread_cleanup_push(cancelled, &o);
    r = abi_futex_serve(caller, word, op, val, timeout, NULL, bits);
    pthread_cleanup_pop(0);
    if (rec.profile)
        rec_profile_end_wait(word);
    c->event.order = r == 0 ? rec_signal_assign(c) : r == -EAGAIN ? rec_signal_last(c) : 0;
    if (rec.profile && r == -EAGAIN)
        rec_profile_leave(c, word, caller, true);
    else
        rec_leave(c, r < 0 ? (int)-r : 0);
    return r;
}

static long wake_observed(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t more, uint32_t *word2,
                          uint32_t val3) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_FUTEX_WAKE, SBT_TRACE_FUTEX, word, caller);
    rec_signal_count(&c, (int32_t)val > 1);
    if (c.thread != NULL && rec_profiles())
        rec_ends_wait(&c, word);
    long r = abi_futex_serve(caller, word, op, val, more, word2, val3);
    rec_signal_given(&c, r);
    c.event.size = r > 0 ? (uint32_t)r : 0;
    if (rec_profiles() && r <= 0)
        rec_profile_leave(&c, word, caller, r < 0);
    else
        rec_leave(&c, r < 0 ? (int)-r : 0);
    return r;
}

/*
 * A run-time library's own: what it waits for is recorded as barriers, sections and locks. libgomp's lock is the very
 * word that its threads wait for, and two objects at one address would end each other's lives. libgomp has the kernel's
 * instruction in it, or calls syscall(), as on aarch64.
 */
static bool is_of_openmp(const void *caller) {
    return rec_openmp_is_seen() && (caller == NULL || rec_openmp_is_library(caller));
}

static long observed(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t more, uint32_t *word2,
                     uint32_t val3) {
    if (is_of_openmp(caller))
        return abi_futex_serve(caller, word, op, val, more, word2, val3);
    switch (op & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        return wait_observed(caller, word, op, val, more, val3);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_WAKE_OP:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        return wake_observed(caller, word, op, val, more, word2, val3);
    default:
        return abi_futex_serve(caller, word, op, val, more, word2, val3);
    }
}

__attribute__((constructor)) static void observe(void) {
    abi_futex_observer = observed;
}
