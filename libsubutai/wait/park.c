/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/park.h"

#include <errno.h>

#include "core/cpus.h"
#include "core/handlers.h"
#include "core/priority.h"
#include "core/probes.h"
#include "core/thread.h"
#include "os/futex.h"
#include "switch/switch.h"
#include "wait/wake_gap.h"
#include "wait/yield_gate.h"

/* Threads without a fiber that sleep in the kernel; counted only where there may be some with. */
static uint32_t n_asleep;

/* Sequentially consistent: either the waker sees the count, or the sleeper's kernel sees the changed word. */
static void count_asleep(int n) {
    if (SBT_UNLIKELY(sbt_switch_wanted))
        __atomic_fetch_add(&n_asleep, (uint32_t)n, __ATOMIC_SEQ_CST);
}

/*
 * A sleep has ended: by itself, by a cancellation, with the thread, or by a handler that leaves it by a jump
 * (os/cleanup.h). The jump also leaves wait_exposed, and the type of cancellation that it has set.
 */
static void runnable_again(void *asleep) {
    const struct _pthread_cleanup_buffer *buffer = asleep;
    sbt_runnable_add(1);
    count_asleep(-1);
    sbt_pin_release();
    if (buffer->__canceltype == PTHREAD_CANCEL_DEFERRED)
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
}

static void call_is_over(void *argument) {
    const struct sbt_asleep_in_call *asleep = argument;
    sbt_runnable_add(1);
    if (asleep->count != NULL)
        __atomic_fetch_sub(asleep->count, 1, __ATOMIC_RELAXED);
    sbt_pin_release();
}

/* The count is one that a waker reads behind a fence: sequentially consistent. */
void sbt_asleep_in_call(struct sbt_asleep_in_call *asleep, uint32_t *count) {
    asleep->count = count;
    sbt_handlers_hold(); /* a jump leaves all of it behind, or nothing */
    sbt_pin_hold();
    if (count != NULL)
        __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
    sbt_runnable_add(-1);
    _pthread_cleanup_push(&asleep->buffer, call_is_over, asleep);
    sbt_handlers_release();
}

void sbt_awake_after_call(struct sbt_asleep_in_call *asleep) {
    sbt_handlers_hold();
    _pthread_cleanup_pop(&asleep->buffer, 1);
    sbt_handlers_release();
}

long sbt_wake(uint32_t *word, int n) {
    if (SBT_LIKELY(sbt_switch_running_load() == 0))
        return SBT_UNLIKELY(sbt_wake_gap_on) ? sbt_wake_gap_wake(word, n, FUTEX_BITSET_MATCH_ANY)
                                             : sbt_futex_wake(word, n);
    long woken = sbt_switch_wake(word, n);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (woken < n && __atomic_load_n(&n_asleep, __ATOMIC_RELAXED) != 0)
        woken += sbt_futex_wake(word, n - (int)woken);
    return woken;
}

void sbt_wait_yield_to_fibers(void) {
    if (!sbt_switch_roams())
        sbt_yield_gate_offer(&sbt_yield_gate);
    else
        sbt_switch_yield(false);
}

/*
 * Under a real-time policy equals get the core in no other way, so the gate would keep it from them for as long as it
 * is closed. The kernel is asked, because another process may have set the policy (chrt -p).
 */
void sbt_wait_offer(void) {
    if (!sbt_yield_gate_offer(&sbt_yield_gate) && sbt_priority_read() != 0)
        sbt_yield();
}

void sbt_wait_yield(bool goes_on) {
    if (sbt_self.fiber == NULL || !sbt_switch_yield(goes_on))
        sbt_yield_gate_offer_or_pause(&sbt_yield_gate);
}

/*
 * Asynchronous cancellation is on for the length of the system call only. It has a frame of its own without a clean-up
 * region: a cancellation may strike between any two instructions here, and only a caller that stands at a call
 * instruction is sure to have its clean-up found by the unwinder.
 */
static SBT_NOINLINE int wait_exposed(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline,
                                     int *type) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, type);
    int r = sbt_futex_wait(word, expected, deadline);
    pthread_setcanceltype(*type, NULL);
    *type = PTHREAD_CANCEL_ASYNCHRONOUS; /* it is not to be restored any more */
    pthread_testcancel(); /* or the signal of a cancellation that has just been requested strikes when the thread has
                             returned */
    return r;
}

/* Asleep in the kernel; a fiber at its home, where signals and cancellations reach it. */
static int sleep_in_kernel(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline, bool cancelable) {
    struct _pthread_cleanup_buffer asleep = {.__canceltype = PTHREAD_CANCEL_ASYNCHRONOUS}; /* nothing to restore */
    int r;
    sbt_cpus_look();
    sbt_pin_hold();
    _pthread_cleanup_push(&asleep, runnable_again, &asleep);
    count_asleep(1);
    sbt_runnable_add(-1);
    SBT_PROBE1(sleep, word);
    r = cancelable ? wait_exposed(word, expected, deadline, &asleep.__canceltype)
                   : sbt_futex_wait_frame(word, expected, deadline);
    SBT_PROBE2(awake, word, r);
    if (SBT_UNLIKELY(sbt_wake_gap_on))
        sbt_wake_gap_woken(word);
    _pthread_cleanup_pop(&asleep, 1);
    if (r == 0)
        sbt_switch_note_wait();
    return r;
}

SBT_NOINLINE int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    if (SBT_UNLIKELY(sbt_self.fiber != NULL) && sbt_switch_begins_wait())
        return sbt_switch_wait(word, expected, deadline);
    return sleep_in_kernel(word, expected, deadline, false);
}

SBT_NOINLINE int sbt_park_cancelable(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    if (SBT_LIKELY(sbt_self.fiber == NULL || sbt_switch_interrupts || !sbt_switch_begins_wait()))
        return sleep_in_kernel(word, expected, deadline, true);
    pthread_testcancel();
    int r = sbt_switch_wait(word, expected, deadline);
    pthread_testcancel();
    return r;
}

int sbt_park_own(uint32_t *word, uint32_t expected, const uint32_t *wake_word, const struct sbt_deadline *deadline,
                 bool cancelable) {
    return wake_word != NULL ? sbt_park_fiber(deadline, cancelable)
                             : sleep_in_kernel(word, expected, deadline, cancelable);
}

uint32_t *sbt_waiter_word(void) {
    return sbt_fiber_word();
}

bool sbt_waiter_wake(uint32_t *word) {
    if (word == NULL)
        return true;
    return sbt_fiber_is_word(word) ? sbt_fiber_unpark(word) : sbt_futex_wake(word, 1) > 0;
}
