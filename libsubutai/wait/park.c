/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/park.h"

#include <errno.h>

#include "core/thread.h"
#include "wait/futex.h"

static void runnable_again(void *unused) {
    (void)unused;
    sbt_runnable_add(1);
}

SBT_NOINLINE int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    int r;
    pthread_cleanup_push(runnable_again, NULL);
    sbt_runnable_add(-1);
    r = sbt_futex_wait_frame(word, expected, deadline);
    pthread_cleanup_pop(1);
    return r;
}

/*
 * Asynchronous cancellation is on for the length of the system call only. It has a frame of its own without a clean-up
 * region: a cancellation may strike between any two instructions here, and only a caller that stands at a call
 * instruction is sure to have its clean-up found by the unwinder.
 */
static SBT_NOINLINE int wait_exposed(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    int r = sbt_futex_wait(word, expected, deadline);
    pthread_setcanceltype(type, NULL);
    pthread_testcancel(); /* or the signal of a cancellation that has just been requested strikes when the thread has
                             returned */
    return r;
}

SBT_NOINLINE int sbt_park_cancelable(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    int r;
    pthread_cleanup_push(runnable_again, NULL);
    sbt_runnable_add(-1);
    r = wait_exposed(word, expected, deadline);
    pthread_cleanup_pop(1);
    return r;
}

int sbt_waiter_wait(struct sbt_waiter *w, const struct sbt_deadline *deadline, struct sbt_active *active,
                    bool cancelable) {
    for (;;) {
        uint32_t state = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE);
        if (state > SBT_WAITER_PARKED)
            return 0;
        if (state == SBT_WAITER_WAITING && sbt_active_step(active))
            continue;
        /* Relaxed: going to sleep publishes nothing; what it is told is acquired above. */
        if (state == SBT_WAITER_WAITING && !__atomic_compare_exchange_n(&w->state, &state, SBT_WAITER_PARKED, false,
                                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        int r = cancelable ? sbt_park_cancelable(&w->state, SBT_WAITER_PARKED, deadline)
                           : sbt_park(&w->state, SBT_WAITER_PARKED, deadline);
        if (r == ETIMEDOUT)
            return ETIMEDOUT;
    }
}
