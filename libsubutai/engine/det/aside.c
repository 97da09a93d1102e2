/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that come to the round and leave it: threads that it does not know, guests, calls that wait for the outside,
 * waits that a handler ends.
 */
#include <signal.h>

#include "core/handlers.h"
#include "core/log.h"
#include "engine/det/det.h"
#include "engine/det/type.h"
#include "os/futex.h"
#include "os/real.h"
#include "switch/switch.h"

/* Between two looks of a thread from nowhere that is not to come yet; for each of them. */
#define DET_NEWCOMER_NS 200000

void det_stand_aside(struct det_aside *aside) {
    *aside = (struct det_aside){det_self.number, det_self.waiting, det_self.is_guest, det_self.is_absent};
    det_self.is_guest = det_self.is_absent = det_self.is_out = false;
    det_self.waiting = det_self.number + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    det_self.number = DET_NO_NUMBER;
}

void det_come_back(const struct det_aside *aside) {
    det_self.number = aside->number;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    det_self.waiting = aside->waiting;
    det_self.is_guest = aside->is_guest;
    det_self.is_absent = aside->is_absent;
}

/*
 * In a handler: the interrupted sleep ends when the handler returns. A system call that the kernel restarts ends at
 * once, since the word is another; a fiber that sleeps in switch/ does not look at the word, and has to be woken.
 */
static void end_sleep(void) {
    if (det_self.waiting != 0)
        det_wake_waiter(det_self.waiting - 1);
}

/* The thread looks at what it waits for: the handler may have changed it without an operation. */
void det_handler_runs(struct sbt_waiter *unused, int signal) {
    struct sigaction action;
    (void)unused;
    if (sbt_real.sigaction(signal, NULL, &action) == 0 && (action.sa_flags & SA_RESTART) != 0)
        det_self.n_restarts++;
    else
        det_self.n_interrupts++;
    det_self.has_handled = true;
    end_sleep();
}

void det_adopt(uint32_t number) {
    det_self.number = number;
    det_self.waiting = 0;
    det_self.is_guest = det_self.is_absent = det_self.is_ended = det_self.is_exiting = det_self.is_out = false;
    det_self.hint = NULL;
    det_self.in_pcs = 0;
    det_self.generation = det_round->generation;
    __atomic_store_n(&det_round->thread[number].in_op, &det_self.in_op, __ATOMIC_RELEASE);
    __atomic_store_n(&det_round->thread[number].tid, sbt_thread_tid(), __ATOMIC_RELAXED);
}

void det_adopt_unknown(uint32_t number, bool is_detached) {
    struct det_thread *thread = &det_round->thread[number];
    det_adopt(number);
    det_set_alias(thread, 0);
    thread->handle = pthread_self();
    thread->has_handle = true;
    thread->is_detached = is_detached;
    thread->is_cancelled = false;
}

/* With the lock: the holder may be gone, or there was none. The thread to be given the turn. */
static uint32_t choose_if_none(struct turn *t) {
    if (t->holder != TURN_NO_THREAD && t->thread[t->holder].state == TURN_RUNNABLE)
        return TURN_NO_THREAD;
    return turn_choose(t);
}

/* With the lock. */
static void be_guest(uint32_t number) {
    struct det_round *r = det_round;
    struct det_thread *guest = &r->thread[number];
    det_self.is_guest = true;
    __atomic_store_n(&guest->in_op, &det_self.in_op, __ATOMIC_RELEASE);
    __atomic_store_n(&guest->tid, 0, __ATOMIC_RELAXED);
    det_set_alias(guest, 0);
    guest->is_cancelled = false;
    r->turn.thread[number].key = 0; /* it is not back from a wait: nothing is to be passed on */
    if (det_self.waiting == 0)
        return;
    uint32_t interrupted = det_self.waiting - 1, root = det_root(interrupted);
    turn_absent(&r->turn, interrupted);
    det_look_no_more(interrupted);
    det_set_alias(guest, root + 1);
    det_self.is_absent = true;
}

/* With the lock. What the thread before it left in the record would make it look like that one. */
static void be_newcomer(uint32_t number) {
    struct det_round *r = det_round;
    det_self.is_new = true;
    __atomic_store_n(&r->thread[number].in_op, &det_self.in_op, __ATOMIC_RELEASE);
    r->newcomer = (struct det_newcomer){.in_op = &det_self.in_op, .number = number};
}

static void come_in(uint32_t number, enum schedule_return how);

/*
 * Threads from nowhere (of the C library's timers) may come faster than the turn goes on: on a busy machine a turn
 * takes milliseconds. They have the highest numbers, so the turn would go from one of them to the next, and never come
 * back to the others. So a thread from nowhere comes into the round when the one before it has had a turn and has
 * passed it, or needs none now: then the turn goes round once for each. A thread that goes on alone passes no turn: the
 * next one comes at once.
 */
static bool may_come(const struct det_round *r) {
    const struct det_newcomer *before = &r->newcomer;
    const bool is_there = before->in_op != NULL && turn_state_of(&r->turn, before->number) == TURN_RUNNABLE &&
                          __atomic_load_n(&r->thread[before->number].in_op, __ATOMIC_RELAXED) == before->in_op;
    return !is_there || r->turn.n_runnable <= 1 ||
           (before->first != 0 && before->first != __atomic_load_n(&r->turn.now, __ATOMIC_RELAXED) + 1);
}

/* Takes the lock. The more threads wait the less often each of them looks. */
static void await_the_one_before(void) {
    struct det_round *r = det_round;
    __atomic_fetch_add(&r->n_newcomers, 1, __ATOMIC_RELAXED);
    for (;;) {
        sbt_lock_take(&r->lock);
        if (may_come(r))
            break;
        sbt_lock_drop(&r->lock);
        sbt_pause_ns(DET_NEWCOMER_NS * (long)__atomic_load_n(&r->n_newcomers, __ATOMIC_RELAXED));
    }
    __atomic_fetch_sub(&r->n_newcomers, 1, __ATOMIC_RELAXED);
}

void det_newcomer_has_turn(void) {
    struct det_round *r = det_round;
    det_self.is_new = false;
    sbt_lock_take(&r->lock);
    if (r->newcomer.in_op == &det_self.in_op)
        r->newcomer.first = r->turn.now + 1;
    sbt_lock_drop(&r->lock);
}

void det_join_round(void) {
    struct det_round *r = det_round;
    bool is_known = det_self.generation == r->generation;
    if (is_known && det_self.is_out) {
        come_in(det_self.waiting - 1, SCHEDULE_FROM_PCS);
        return;
    }
    uint32_t created = is_known ? TURN_NO_THREAD : det_number_at_creation();
    if (created != TURN_NO_THREAD) { /* a signal handler comes before det_created */
        det_adopt(created);
        return;
    }
    if (is_known) {
        sbt_lock_take(&r->lock);
    } else {
        det_await_begun();
        await_the_one_before();
    }
    uint32_t number = turn_create(&r->turn), next = TURN_NO_THREAD;
    if (number != TURN_NO_THREAD) {
        det_returned(number, SCHEDULE_FROM_NOWHERE);
        det_hints_create(number, 0);
        if (is_known)
            be_guest(number);
        else
            be_newcomer(number);
        det_self.number = number;
        next = choose_if_none(&r->turn);
    }
    sbt_lock_drop(&r->lock);
    if (number == TURN_NO_THREAD) {
        sbt_log(0, "the engine det has no room for another thread", NULL);
        __builtin_trap();
    }
    if (is_known)
        end_sleep(); /* or the thread would not see that it is absent, and has been woken meanwhile */
    det_give(next);
    if (is_known)
        return;
    det_adopt_unknown(number, true); /* a join of it is outside */
    det_thread_enter();
}

/* With the lock: that guest is no more. */
static void drop_guest(uint32_t number) {
    struct det_round *r = det_round;
    turn_release(&r->turn, number);
    det_look_no_more(number);
    det_set_alias(&r->thread[number], 0);
}

/* The guests of that thread's handlers are no more. */
static void drop_guests(uint32_t root) {
    struct det_round *r = det_round;
    for (uint32_t i = 0; i < r->turn.n_threads; i++)
        if (r->thread[i].alias == root + 1)
            drop_guest(i);
}

void det_abandon_wait(void) {
    struct det_round *r = det_round;
    if (det_self.offers != 0) {
        sbt_handlers_hold();
        det_look_at_offer();
        sbt_handlers_release();
    }
    if (det_self.generation != sbt_fork_generation() + 1 || det_self.waiting == 0)
        return;
    uint32_t root = det_root(det_self.waiting - 1);
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    drop_guests(root);
    det_look_no_more(root);
    turn_absent(&r->turn, root); /* what it was woken for goes to others */
    turn_wake_thread(&r->turn, root, TURN_INTERRUPTED);
    turn_present(&r->turn, root);
    det_returned(root, SCHEDULE_FROM_HANDLER);
    uint32_t next = choose_if_none(&r->turn);
    sbt_lock_drop(&r->lock);
    det_self.number = root;
    det_self.waiting = det_self.offers = 0;
    det_self.is_guest = det_self.is_absent = det_self.is_out = false;
    det_give(next);
    if (det_is_serial)
        det_wait_serially();
    sbt_handlers_release();
}

/*
 * The guest's wait is over. It slept on the word of the thread that it interrupted, and has left that at ASLEEP: the
 * interrupted wait would sleep on, or begin to, and would not see that it is absent, and has been woken meanwhile.
 */
static void abandon_guest(const struct det_aside *aside) {
    struct det_round *r = det_round;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    turn_absent(&r->turn, aside->number); /* what it was woken for goes to others */
    drop_guest(aside->number);
    uint32_t next = choose_if_none(&r->turn);
    sbt_lock_drop(&r->lock);
    det_self.number = DET_NO_NUMBER;
    det_self.waiting = aside->waiting;
    det_self.is_absent = aside->is_absent;
    det_self.is_guest = det_self.is_out = false;
    end_sleep();
    det_give(next);
    sbt_handlers_release();
}

void det_left_wait(void *argument) {
    const struct det_aside *aside = argument;
    det_self.n_inner = 0;
    if (aside->waiting == 0) {
        det_abandon_wait();
        det_self.offers = 0;
    } else if (det_self.generation == sbt_fork_generation() + 1) {
        abandon_guest(aside);
    }
}

void det_end_thread(void) {
    struct det_round *r = det_round;
    det_abandon_wait();
    det_take(DET_END);
    sbt_lock_take(&r->lock);
    uint32_t number = det_self.number;
    if (r->thread[number].is_cancelled && --r->n_cancelled == 0)
        r->is_watched = __atomic_load_n(&r->is_logged, __ATOMIC_RELAXED) || r->is_hinted;
    r->thread[number].is_cancelled = false;
    turn_wake(&r->turn, (uintptr_t)&r->thread[number], UINT32_MAX);
    turn_end(&r->turn);
    bool is_detached = r->thread[number].is_detached;
    if (is_detached)
        r->thread[number].has_handle = false;
    uint32_t next = turn_pass(&r->turn);
    if (is_detached)
        turn_release(&r->turn, number);
    sbt_lock_drop(&r->lock);
    det_self.number = DET_NO_NUMBER;
    det_self.waiting = det_self.offers = 0;
    det_self.is_ended = true;
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELAXED);
    det_give(next);
    if (__atomic_load_n(&r->turn.holder, __ATOMIC_RELAXED) == TURN_NO_THREAD)
        det_call_stuck();
    sbt_handlers_release();
}

/* ---- outside ---- */

void det_depart(void) {
    struct det_round *r = det_round;
    struct det_aside aside;
    det_self.last_ns = r->turn.now;
    det_self.hint = NULL;
    det_stand_aside(&aside);
    det_self.is_out = true;
    sbt_lock_take(&r->lock);
    turn_leave(&r->turn);
    uint32_t next = turn_pass(&r->turn);
    sbt_lock_drop(&r->lock);
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELAXED);
    det_give(next);
}

static void come_in(uint32_t number, enum schedule_return how) {
    struct det_round *r = det_round;
    const struct det_aside aside = {.number = number};
    sbt_lock_take(&r->lock);
    turn_return(&r->turn, number);
    det_returned(number, how);
    if (r->turn.holder == TURN_NO_THREAD)
        turn_choose(&r->turn);
    sbt_lock_drop(&r->lock);
    det_self.is_out = false;
    det_come_back(&aside);
}

static void come_back_from_call(void) {
    struct det_round *r = det_round;
    if (r->generation == sbt_fork_generation() + 1 && det_self.generation == r->generation && det_self.waiting != 0 &&
        turn_state_of(&r->turn, det_self.waiting - 1) == TURN_OUTSIDE) {
        if (det_self.in_pcs != 0 && !det_is_serial)
            det_self.is_out = true; /* it stays outside until its next operation */
        else
            come_in(det_self.waiting - 1, SCHEDULE_FROM_CALL);
    }
    if (det_is_serial)
        det_wait_serially();
}

/* The call has ended by a jump, or with the thread. */
static void left_call(void *left) {
    sbt_handlers_hold();
    come_back_from_call();
    sbt_handlers_release();
    det_type_left(left);
}

/* With the turn. A deferred handler may leave by a jump. */
static void leave(struct _pthread_cleanup_buffer *left, struct _pthread_cleanup_buffer *kept) {
    det_depart();
    det_self.is_out = false; /* handlers' operations are guests': the thread is in a call */
    if (kept != NULL)
        det_type_forget(kept);
    left->__canceltype = kept != NULL ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
    _pthread_cleanup_push(left, left_call, left);
    sbt_handlers_release();
}

/*
 * A guest's thread is aside anyway. A call inside of an operation keeps the turn: that operation goes on with it. An
 * asynchronous cancellation strikes in the call itself.
 */
bool det_outside_begin(struct _pthread_cleanup_buffer *left) {
    struct _pthread_cleanup_buffer kept;
    if (det_in_operation() || det_self.creates)
        return false;
    sbt_handlers_hold();
    bool is_async = det_type_defer(&kept);
    sbt_handlers_release();
    det_take(DET_LEAVE);
    bool leaves = !det_self.is_guest;
    if (leaves)
        leave(left, is_async ? &kept : NULL);
    else
        det_pass();
    if (SBT_LIKELY(!is_async))
        return leaves;
    if (leaves) {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        left->__canceltype = PTHREAD_CANCEL_DEFERRED; /* in the call the type is the program's */
    } else {
        det_type_restore(&kept);
    }
    return leaves;
}

/* In a child that a handler has forked meanwhile there is nothing to come back to. */
void det_outside_end(struct _pthread_cleanup_buffer *left) {
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &left->__canceltype);
    bool is_async = left->__canceltype == PTHREAD_CANCEL_ASYNCHRONOUS;
    sbt_handlers_hold();
    _pthread_cleanup_pop(left, 0);
    if (SBT_UNLIKELY(is_async))
        _pthread_cleanup_push(left, det_type_left, left);
    come_back_from_call();
    sbt_handlers_release();
    if (SBT_UNLIKELY(is_async))
        det_type_restore(left);
}
