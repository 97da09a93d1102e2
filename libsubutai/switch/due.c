/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deadlines of fibers that wait away from their home threads. The fiber's own home thread keeps the deadline; it has
 * nothing else to do:
 *  1. The parked home thread sleeps in the kernel until the deadline, by the deadline's own clock. So the kernel
 *     answers for the precision, and for a clock that is set.
 *  2. When the deadline has passed, it wakes the fiber as any waker would.
 *  3. If the fiber did wait, the home thread owns it now, and runs it where it is.
 *
 * So there is no list of deadlines: none to keep in order, to search at a wake-up, or to empty in a forked child. A
 * fiber that times out needs one wake-up and no carrier.
 *
 * Most waits end before their deadline, so the home thread keeps its old deadline when a wait is over, and looks for
 * the present deadline (`due`) when the old one has passed. A wait calls the parked home thread only if that sleeps
 * towards a later deadline or towards none (`armed`). So waits with a limit that hardly ever strikes make one system
 * call in the length of a limit.
 *
 * The race between the two:
 *  - the fiber stores due, fences, loads armed;
 *  - the parked home thread stores armed, fences, loads due.
 *
 * Either the fiber sees that it must call, or the parked home thread sees what it must sleep towards.
 *
 * A deadline is a number: 0 is none, other values are nanoseconds times two, plus one for the realtime clock.
 */
#include "switch/due.h"

#include <errno.h>

#include "switch/state.h"

#define LATEST_S 4000000000 /* the year 2096: nanoseconds times two fit, and waking up early is allowed */

static uint64_t due_of(const struct sbt_deadline *deadline) {
    uint64_t ns = 1; /* a time before 1970 has passed */
    if (deadline->at.tv_sec >= LATEST_S)
        ns = (uint64_t)LATEST_S * 1000000000u;
    else if (deadline->at.tv_sec >= 0)
        ns = (uint64_t)deadline->at.tv_sec * 1000000000u + (uint64_t)deadline->at.tv_nsec;
    return (ns | (ns == 0)) << 1 | (deadline->clock == CLOCK_REALTIME);
}

static struct sbt_deadline deadline_of(uint64_t due) {
    uint64_t ns = due >> 1;
    return (struct sbt_deadline){(due & 1) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC,
                                 {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};
}

bool sbt_due_set(struct sbt_fiber *f, const struct sbt_deadline *deadline) {
    uint64_t due = due_of(deadline);
    __atomic_store_n(&f->due, due, __ATOMIC_RELAXED);
    if (f->carrier == NULL)
        return true; /* the home thread parks after this, and begins with this deadline */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint64_t armed = __atomic_load_n(&f->armed, __ATOMIC_RELAXED);
    if (armed != 0 && (armed & 1) == (due & 1) && armed <= due)
        return true;
    if (sbt_deadline_passed(deadline)) {
        sbt_due_clear(f);
        return false;
    }
    /* The fiber runs, so no other thread may send it home: this overwrites no other call. */
    __atomic_store_n(&f->home_call, SBT_HOME_LOOK, __ATOMIC_RELEASE);
    sbt_futex_wake(&f->home_call, 1);
    return true;
}

void sbt_due_clear(struct sbt_fiber *f) {
    __atomic_store_n(&f->due, 0, __ATOMIC_RELAXED);
}

/* Sleep until `due` or the next call. False: `due` has passed. */
static bool sleep_until(struct sbt_fiber *f, uint64_t due) {
    struct sbt_deadline deadline = deadline_of(due);
    return sbt_futex_wait(&f->home_call, SBT_HOME_NOTHING, due != 0 ? &deadline : NULL) != ETIMEDOUT;
}

static void arm(struct sbt_fiber *f, uint64_t due) {
    __atomic_store_n(&f->armed, due, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void sbt_due_sleep(struct sbt_fiber *f) {
    uint64_t served = 0; /* a deadline that has passed while the fiber was awake: it has been given the token for it */
    for (;;) {
        uint32_t call = __atomic_load_n(&f->home_call, __ATOMIC_ACQUIRE);
        if (call == SBT_HOME_COME)
            return;
        if (call == SBT_HOME_LOOK) {
            served = 0;
            /* Fails if the fiber has been sent home meanwhile. */
            __atomic_compare_exchange_n(&f->home_call, &call, SBT_HOME_NOTHING, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED);
        }
        uint64_t due = __atomic_load_n(&f->due, __ATOMIC_RELAXED), target = due != served ? due : 0;
        arm(f, target);
        if (__atomic_load_n(&f->due, __ATOMIC_RELAXED) != due || sleep_until(f, target))
            continue;
        arm(f, 0);
        if (__atomic_load_n(&f->due, __ATOMIC_RELAXED) != target)
            continue; /* the wait with that deadline is over */
        if (__atomic_exchange_n(&f->token, SBT_TOKEN_TOKEN, __ATOMIC_ACQ_REL) == SBT_TOKEN_PARKED) {
            sbt_runnable_add(1);
            return;
        }
        served = target;
    }
}
