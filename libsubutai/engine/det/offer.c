/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Offers. A thread that waits for the turn, only to block at a barrier when it has it, would be woken for nothing, and
 * all others would wait for its wake-up. So it offers the operation. The thread that passes the turn to it performs the
 * operation in its place, and passes the turn on. The schedule is the same: the operation is made when its thread has
 * the turn, whichever thread makes it.
 *
 *  1. The thread writes down its operation, stands aside, and offers, with the lock. It has not got the turn: if it
 *     had, it would make the operation itself.
 *  2. It waits for the turn, as each thread does.
 *  3. A thread passes the turn to it, and finds the offer with the lock. It performs the operation: the other thread is
 *     blocked, or it is the last at the barrier, and all are let go (release.c).
 *  4. The thread sees that it may go on, or is woken as from any wait.
 *
 * A thread that sees that it has the turn before 3. takes the offer back, with the lock, and makes the operation
 * itself. So does a handler that interrupts the wait and makes an operation. If it comes behind 3., the thread is one
 * that waits at a barrier, and the handler's operations are a guest's (aside.c).
 *
 * A thread with a hint at the call needs the turn. With times in the log the time of an operation is its thread's own.
 */
#include "core/object.h"
#include "engine/det/hints.h"
#include "engine/det/type.h"

static struct det_offer *offer_of(uint32_t number) {
    return &det_round->thread[number].offer;
}

/* ---- the thread that offers ---- */

static bool may_offer(void) {
    const struct det_round *r = det_round;
    return r->generation == sbt_fork_generation() + 1 && det_self.generation == r->generation &&
           det_self.number != DET_NO_NUMBER && !det_self.is_guest && det_self.offers == 0 && det_self.in_pcs == 0 &&
           det_self.n_inner == 0 && !det_in_operation() && !det_is_serial && !r->is_timed;
}

/*
 * False: the caller has the turn, or makes the operation itself for another reason. A handler that cannot be deferred
 * may come in between, and take the offer back.
 */
static bool make_offer(enum det_op op, void *object) {
    struct det_round *r = det_round;
    uint32_t number = det_self.number;
    uintptr_t site;
    if (!det_watch_offer(&site))
        return false;
    *offer_of(number) = (struct det_offer){.object = object, .op = op, .site = site};
    __atomic_store_n(&r->thread[number].release, DET_GOES_ON, __ATOMIC_RELAXED);
    det_self.offers = number + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    det_self.number = DET_NO_NUMBER;
    sbt_lock_take(&r->lock);
    bool is_made = det_self.offers == number + 1 && turn_offer(&r->turn, number);
    det_note_handlers(number);
    sbt_lock_drop(&r->lock);
    if (is_made)
        return true;
    det_self.number = number;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    det_self.offers = 0;
    return false;
}

void det_look_at_offer(void) {
    struct det_round *r = det_round;
    if (r->generation != sbt_fork_generation() + 1 || det_self.generation != r->generation ||
        det_self.number != DET_NO_NUMBER || det_self.waiting != 0)
        return;
    uint32_t number = det_self.offers - 1;
    sbt_lock_take(&r->lock);
    bool is_withdrawn = turn_withdraw(&r->turn, number);
    sbt_lock_drop(&r->lock);
    if (is_withdrawn) {
        det_self.number = number;
        det_self.offers = 0;
        det_wake_waiter(number); /* in a handler: the interrupted wait looks again */
    } else {
        det_self.waiting = number + 1;
    }
}

/*
 * False: the process is a child. A thread may see that it has the turn, and be served before it looks at its offer:
 * then it waits on.
 */
static bool await(uint32_t number) {
    static const struct det_wait wait = {.tag = TURN_EXACT, .goes_on = true, .is_offer = true};
    struct _pthread_cleanup_buffer jumped;
    struct det_aside aside = {.number = number};
    bool is_here;
    _pthread_cleanup_push(&jumped, det_left_wait, &aside);
    do {
        is_here = det_await_woken(&wait, number, det_round->generation);
        det_look_at_offer();
    } while (is_here && det_self.offers != 0 && !det_is_released(number) &&
             __atomic_load_n(&det_round->turn.holder, __ATOMIC_ACQUIRE) != number);
    _pthread_cleanup_pop(&jumped, 0);
    return is_here;
}

/*
 * The offer is no more. True: it was served. In a child the thread has another number, or none yet, but the operation
 * is as good as served: it has been the parent's.
 */
static bool settle(bool is_here, uint32_t number) {
    bool is_served = det_self.offers != 0;
    det_self.offers = 0;
    if (is_served && is_here)
        det_come_back(&(struct det_aside){.number = number});
    return is_served;
}

/* It was absent when the others were let go, and has the turn. Or it is in a child that a handler has forked. */
static void finish(bool is_here, uint32_t number) {
    struct det_round *r = det_round;
    if (is_here) {
        enum turn_reason reason = (enum turn_reason)r->turn.thread[number].reason;
        r->hash = schedule_hash_resume(r->hash, number, (enum schedule_reason)reason);
        if (det_is_watched())
            det_watch_resume(reason);
    } else {
        det_take_slow();
    }
    det_pass();
}

bool det_offer(enum det_op op, void *object, int *result) {
    struct _pthread_cleanup_buffer kept;
    sbt_handlers_hold(); /* first: a handler may fork */
    if (!may_offer()) {
        sbt_handlers_release();
        return false;
    }
    uint32_t number = det_self.number;
    bool is_async = det_type_defer(&kept);
    bool is_made = make_offer(op, object), is_here = is_made && await(number);
    bool is_served = is_made && settle(is_here, number);
    if (is_served && is_here)
        *result = offer_of(number)->result;
    if (is_served && is_here && det_is_released(number)) {
        det_go_on();
        det_self.has_gone_on = false;
        sbt_handlers_release();
    } else if (is_served) {
        finish(is_here, number);
    } else {
        __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELEASE);
        sbt_handlers_release();
    }
    if (SBT_UNLIKELY(is_async))
        det_type_restore(&kept);
    return is_served;
}

/* ---- the thread that passes the turn: with the lock, in the holder's place ---- */

/* As det_pass. */
static void pass(void) {
    struct turn *t = &det_round->turn;
    if (det_is_alone())
        __atomic_store_n(&t->now, det_after_kept(t), __ATOMIC_RELAXED);
    else
        turn_pass(t);
}

static void arrive(uint32_t number, struct det_released *released) {
    struct det_round *r = det_round;
    struct det_offer *offer = offer_of(number);
    struct sbt_barrier *bx = sbt_barrier_of(offer->object);
    det_object(&bx->hw_id);
    if (++bx->rounds == bx->count) {
        bx->rounds = 0;
        det_release_locked(offer->object, released);
        offer->result = PTHREAD_BARRIER_SERIAL_THREAD;
        det_let_go(number, released);
        pass();
    } else {
        offer->result = 0;
        turn_block(&r->turn, (uintptr_t)offer->object, TURN_NEVER, TURN_EXACT, false);
        r->thread[number].awaits = DET_BARRIER;
        turn_pass(&r->turn);
        det_look_no_more(number);
    }
}

static void perform(uint32_t number, struct det_released *released) {
    struct det_round *r = det_round;
    const struct det_offer *offer = offer_of(number);
    r->n_ops++;
    r->hash = schedule_hash_op(r->hash, number, (enum schedule_op)offer->op);
    if (det_is_watched())
        det_watch_served(offer->op, number, offer->site);
    arrive(number, released);
}

static bool needs_turn(uint32_t number) {
    return det_round->turn.offer[number] == TURN_OFFERED && det_watch_needs_turn(offer_of(number)->site);
}

uint32_t det_serve(uint32_t holder) {
    struct det_round *r = det_round;
    struct det_released released = {.n = 0};
    sbt_lock_take(&r->lock);
    while ((holder = r->turn.holder) != TURN_NO_THREAD && !needs_turn(holder) && turn_serve(&r->turn) != TURN_NO_THREAD)
        perform(holder, &released);
    sbt_lock_drop(&r->lock);
    det_wake_all(&released);
    return holder;
}
