/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations that block, and cancellation points. */
#include <sys/syscall.h>

#include "core/handlers.h"
#include "engine/det/det.h"
#include "engine/det/type.h"
#include "switch/switch.h"

/*
 * The type of cancellation is deferred, or none has been asked for: from glibc 2.41 on a cancellation acts in the
 * second call otherwise.
 */
static bool is_enabled(void) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, NULL);
    return state == PTHREAD_CANCEL_ENABLE;
}

/* A cancellation that came before the wait; it may be disabled. */
static bool is_asked_for(void) {
    return SBT_UNLIKELY(det_round->thread[det_root(det_self.number)].is_cancelled) && !det_self.is_exiting;
}

/*
 * One that acts. The type is deferred. From glibc 2.41 on the handler that acts upon one disables cancellation before
 * it unwinds.
 */
static bool is_cancelled(void) {
    return is_asked_for() && (sbt_self.in_cancellation || is_enabled());
}

/*
 * With asynchronous cancellation the signal of a cancellation may strike while the thread waits for the turn, or has
 * it: the others would wait for the turn that it takes to its end. So the type is deferred in a wait, and the signal in
 * an operation. A thread that has been cancelled gives the turn up before the type is what it was. Not in an operation
 * inside of another.
 *
 * The cancellation acts in pthread_setcanceltype, once its signal has been handled. The kernel does that when the
 * thread comes back from a system call: the signal was sent before the thread has got the turn.
 */
SBT_NOINLINE void det_be_asynchronous_again(void) {
    bool passes = is_cancelled();
    if (passes) {
        det_self.is_exiting = true;
        det_pass();
        sbt_pin_self(false);
        sbt_syscall0(SYS_getpid);
    }
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    if (passes) { /* the cancellation had acted before, in a computation: this is an operation of a clean-up */
        sbt_handlers_hold();
        det_take_slow();
    }
}

SBT_NOINLINE void det_look_at_cancellation(void) {
    int type;
    if (!is_asked_for())
        return;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        det_be_asynchronous_again();
}

void det_cancel_has_acted(void) {
    det_self.is_exiting = true;
}

/* If pthread_testcancel returns, the thread ends already. */
void det_take_cancelable(enum det_op op) {
    for (;;) {
        int type;
        pthread_testcancel();
        det_take(op);
        if (!is_asked_for())
            return;
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
        bool acts = is_cancelled();
        if (acts)
            det_pass();
        pthread_setcanceltype(type, NULL);
        if (!acts)
            return;
        pthread_testcancel();
        det_self.is_exiting = true;
    }
}

static uint64_t due_of(const struct det_wait *wait) {
    return wait->turns != 0         ? det_round->turn.now + wait->turns * TURN_NS
           : wait->deadline == NULL ? TURN_NEVER
           : wait->ns != 0          ? det_logical_in(wait->ns)
                                    : det_logical(wait->deadline);
}

/* How the wait has ended is part of the schedule. */
static void resume(enum turn_reason reason) {
    struct det_round *r = det_round;
    r->hash = schedule_hash_resume(r->hash, det_self.number, (enum schedule_reason)reason);
    if (det_is_watched())
        det_watch_resume(reason);
}

/* What a wait leaves as it was: one in a handler does not change what the interrupted one finds. */
struct handled {
    uint32_t n_restarts, n_interrupts;
    bool has_handled;
};

static struct handled begin_to_look(const struct det_wait *wait) {
    const struct handled before = {det_self.n_restarts, det_self.n_interrupts, det_self.has_handled};
    det_self.has_handled = false;
    if (!wait->looks_again)
        return before;
    det_self.is_restarted = false;
    sbt_self.waiter = (struct sbt_waiter *)(void *)&det_self; /* for sbt_handlers_interrupt, which does not look */
    return before;
}

static void end_to_look(const struct det_wait *wait, const struct handled *before) {
    if (wait->looks_again)
        sbt_self.waiter = NULL;
    det_self.n_restarts = before->n_restarts;
    det_self.n_interrupts = before->n_interrupts;
    det_self.has_handled = before->has_handled;
}

/* With the turn. `was_due`: the wait is one for the mutex, behind that of the condition, of which the time was over. */
static void end_of_time(const struct det_wait *wait, enum turn_reason reason, uint64_t before_ns, bool was_due) {
    if (was_due)
        det_self.due.ns = det_round->turn.now + 1;
    if (reason != TURN_TIMED_OUT || wait->deadline == NULL)
        return;
    det_sleep_off(wait->deadline);
    det_clock_is_due(wait, before_ns);
}

enum turn_reason det_block(const void *key, const struct det_wait *wait) {
    struct det_round *r = det_round;
    const uint32_t number = det_self.number, generation = r->generation;
    struct det_aside aside;
    struct _pthread_cleanup_buffer jumped, kept;
    if (wait->can_cancel && is_cancelled())
        return TURN_CANCELLED;
    bool is_async = SBT_UNLIKELY(det_type_defer(&kept));
    bool can_cancel = (wait->can_cancel || is_async) && !det_self.is_exiting && is_enabled();
    uint64_t due = due_of(wait), before_ns = det_self.last_ns;
    bool is_due = det_self.due.ns == r->turn.now + 1;
    uint32_t n_inner = det_self.n_inner; /* operations of handlers meanwhile are inside of none */
    det_self.n_inner = 0;
    det_self.last_ns = r->turn.now;
    const struct handled before = begin_to_look(wait);
    det_stand_aside(&aside);
    sbt_lock_take(&r->lock);
    turn_block(&r->turn, (uintptr_t)key, due, wait->tag, can_cancel);
    if (wait->turns != 0)
        turn_soften(&r->turn);
    r->turn.thread[number].bits = wait->bits;
    r->thread[number].awaits = wait->op;
    det_note_handlers(number);
    __atomic_store_n(&r->thread[number].release, wait->goes_on ? DET_GOES_ON : DET_NEEDS_TURN, __ATOMIC_RELAXED);
    uint32_t next = turn_pass(&r->turn);
    sbt_lock_drop(&r->lock);
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELAXED);
    if (next != number)
        det_give(next);
    _pthread_cleanup_push(&jumped, det_left_wait, &aside);
    bool has_it = det_await_woken(wait, number, generation);
    _pthread_cleanup_pop(&jumped, 0);
    end_to_look(wait, &before);
    det_self.n_inner = n_inner;
    if (!has_it) { /* in a child: it looks again */
        if (is_async)
            det_type_restore(&kept);
        det_take_slow();
        return TURN_WOKEN;
    }
    det_come_back(&aside);
    if (det_may_go_on(wait, number)) {
        det_go_on();
        if (is_async)
            det_type_restore(&kept);
        return TURN_WOKEN;
    }
    enum turn_reason reason = (enum turn_reason)r->turn.thread[number].reason;
    resume(reason);
    if (is_async && reason == TURN_WOKEN && wait->tag != TURN_EXACT && is_cancelled())
        det_wake(key, 1); /* the thread is about to end: what it was woken for goes to another one */
    if (is_async) {
        det_be_asynchronous_again();
        det_type_forget(&kept);
    }
    end_of_time(wait, reason, before_ns, is_due);
    return reason;
}

SBT_NOINLINE uint32_t det_wake_waiters(const void *key, uint32_t n) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    n = turn_wake(&r->turn, (uintptr_t)key, n);
    sbt_lock_drop(&r->lock);
    return n;
}

uint32_t det_waiting(const void *key, uint8_t tag) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    uint32_t n = turn_waiting(&r->turn, (uintptr_t)key, tag);
    sbt_lock_drop(&r->lock);
    return n;
}
