/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deadlines of contexts that wait away from home. Each is kept by the context's own home, whose kernel thread has
 * nothing else to do: the husk sleeps in the kernel until the deadline, by the deadline's own clock, so that the kernel
 * answers for its precision and for a clock that is set. When it has passed the husk wakes the context as anybody
 * would; if that did wait, it has it now, and runs it where it is. So there is no list to keep in order, to search at a
 * wake-up or to empty in a forked child, and a context that times out needs one wake-up and no carrier.
 *
 * A wait tells the husk of its deadline only if that sleeps towards a later one or none (`armed`): a wait that is over
 * in time leaves the husk asleep, which at the old deadline looks what the present one is (`due`). Waits with a time
 * limit that hardly ever strikes make a system call once in as long as the limit, and none otherwise.
 *
 * due and armed: the context stores due, then loads armed; the husk stores armed, then loads due; fences in between.
 * Either the context sees that it must call, or the husk sees what it must sleep towards. 0 is no deadline; otherwise
 * nanoseconds times two, plus one for the realtime clock.
 */
#include <errno.h>

#include "switch/inner.h"

#define LATEST_S 4000000000 /* the year 2096; nanoseconds times two fit, and waking up early is allowed */

static uint64_t due_of(const struct sbt_deadline *deadline) {
    uint64_t ns = 1; /* before 1970: has passed */
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

bool sbt_due_set(struct sbt_context *c, const struct sbt_deadline *deadline) {
    uint64_t due = due_of(deadline);
    __atomic_store_n(&c->due, due, __ATOMIC_RELAXED);
    if (c->carrier == NULL)
        return true; /* the husk, which does not exist yet, begins with it */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint64_t armed = __atomic_load_n(&c->armed, __ATOMIC_RELAXED);
    if (armed != 0 && (armed & 1) == (due & 1) && armed <= due)
        return true;
    if (sbt_deadline_passed(deadline)) {
        sbt_due_clear(c);
        return false;
    }
    /* Running, the context is nobody's to call home, so there is no call that this could overwrite. */
    __atomic_store_n(&c->home_call, SBT_HOME_LOOK, __ATOMIC_RELEASE);
    sbt_futex_wake(&c->home_call, 1);
    return true;
}

void sbt_due_clear(struct sbt_context *c) {
    __atomic_store_n(&c->due, 0, __ATOMIC_RELAXED);
}

/* Sleep until `due` or the next call. False: the deadline has passed. */
static bool sleep_until(struct sbt_context *c, uint64_t due) {
    struct sbt_deadline deadline = deadline_of(due);
    return sbt_futex_wait(&c->home_call, SBT_HOME_NOTHING, due != 0 ? &deadline : NULL) != ETIMEDOUT;
}

static void arm(struct sbt_context *c, uint64_t due) {
    __atomic_store_n(&c->armed, due, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void sbt_due_sleep(struct sbt_context *c) {
    uint64_t served = 0; /* a deadline that has passed, and of which the context knows or has yet to take notice */
    for (;;) {
        uint32_t call = __atomic_load_n(&c->home_call, __ATOMIC_ACQUIRE);
        if (call == SBT_HOME_COME)
            return;
        if (call == SBT_HOME_LOOK) {
            served = 0;
            /* It fails if the context has meanwhile been sent home. */
            __atomic_compare_exchange_n(&c->home_call, &call, SBT_HOME_NOTHING, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED);
        }
        uint64_t due = __atomic_load_n(&c->due, __ATOMIC_RELAXED), target = due != served ? due : 0;
        arm(c, target);
        if (__atomic_load_n(&c->due, __ATOMIC_RELAXED) != due || sleep_until(c, target))
            continue;
        arm(c, 0);
        if (__atomic_load_n(&c->due, __ATOMIC_RELAXED) != target)
            continue; /* of a wait that is over */
        if (__atomic_exchange_n(&c->token, SBT_TOKEN_TOKEN, __ATOMIC_ACQ_REL) == SBT_TOKEN_PARKED) {
            sbt_runnable_add(1);
            return;
        }
        served = target;
    }
}
