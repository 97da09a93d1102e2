/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers let threads go that have nothing to look at when they are woken. Such a thread needs no turn to go on: its
 * operation was over when the last thread came. It is runnable from then on, as a thread that has passed the turn, and
 * takes the turn at its next operation. So the threads of a barrier begin to compute side by side, and not one after
 * the other as the turn comes round.
 *
 *  1. The waiter, with the turn, says that it goes on (DET_GOES_ON), blocks, and passes the turn.
 *  2. The last thread to come, with the turn, makes it runnable, notes the end of its wait in the schedule, and writes
 *     DET_RELEASED; then it wakes it.
 *  3. The waiter sees DET_RELEASED. It may have been given the turn already: then it has the turn while it computes.
 *
 * A waiter with a hint at the barrier needs the turn for that. So does a guest, and a waiter that is absent when the
 * last thread comes: it returns from outside. A handler that begins to make operations between 2. and 3. takes the
 * waiter out of the round, and the waiter comes back before it goes on.
 */
#include "engine/det/hints.h"
#include "wait/park.h"

bool det_await_release(const void *key) {
    bool has_hint = det_self.hint != NULL && det_self.hint->kind != DET_HINT_NONE;
    bool goes_on = !has_hint && !det_self.is_guest && det_self.n_inner == 0;
    if (goes_on)
        det_self.hint = NULL;
    det_block(key, &(struct det_wait){.tag = TURN_EXACT, .op = DET_BARRIER, .goes_on = goes_on});
    bool has_gone_on = det_self.has_gone_on;
    det_self.has_gone_on = false;
    return has_gone_on;
}

/* With the turn and the lock: the thread goes on, and is to be woken. A batch that is full is woken with the lock. */
void det_let_go(uint32_t number, struct det_released *released) {
    struct det_round *r = det_round;
    struct det_thread *thread = &r->thread[number];
    thread->released_ns = r->turn.now;
    __atomic_store_n(&thread->release, DET_RELEASED, __ATOMIC_SEQ_CST);
    if (released->n == DET_RELEASED_MOST) {
        det_wake_all(released);
        released->n = 0;
    }
    released->number[released->n++] = number;
}

/* Unless it needs the turn. */
static void release(uint32_t number, struct det_released *released) {
    struct det_round *r = det_round;
    bool goes_on = __atomic_load_n(&r->thread[number].release, __ATOMIC_RELAXED) == DET_GOES_ON &&
                   !r->turn.thread[number].is_absent;
    turn_wake_thread(&r->turn, number, TURN_WOKEN);
    if (!goes_on)
        return;
    turn_go_on(&r->turn, number);
    r->hash = schedule_hash_resume(r->hash, number, (enum schedule_reason)TURN_WOKEN);
    if (__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
        det_schedule_resume(number, (enum schedule_reason)TURN_WOKEN);
    det_let_go(number, released);
}

void det_release_locked(const void *key, struct det_released *released) {
    uint32_t first;
    while ((first = turn_first(&det_round->turn, (uintptr_t)key)) != TURN_NO_THREAD)
        release(first, released);
}

void det_wake_all(const struct det_released *released) {
    for (uint32_t i = 0; i < released->n; i++)
        det_wake_released(released->number[i]);
}

void det_release(const void *key) {
    struct det_round *r = det_round;
    struct det_released released = {.n = 0};
    sbt_lock_take(&r->lock);
    det_release_locked(key, &released);
    sbt_lock_drop(&r->lock);
    det_wake_all(&released);
}

void det_go_on(void) {
    struct det_thread *thread = &det_round->thread[det_self.number];
    det_self.last_ns = thread->released_ns;
    __atomic_store_n(&thread->release, DET_NEEDS_TURN, __ATOMIC_RELAXED);
    det_self.has_gone_on = true;
    if (det_is_serial)
        det_wait_serially();
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELEASE);
}
