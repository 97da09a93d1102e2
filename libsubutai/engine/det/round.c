/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for the turn.
 *
 * `holder` is the thread that has the turn. A thread that waits sleeps on its own word:
 *
 * | word   | meaning                                  | set by                              |
 * |--------|------------------------------------------|-------------------------------------|
 * | AWAKE  | the thread runs, or looks again          | the thread                          |
 * | ASLEEP | it sleeps, or is about to                | the thread; then it looks at holder |
 * | GIVEN  | it has been given the turn               | the thread that chose it            |
 *
 * The thread that passes the turn writes holder and then the word; a waiting thread writes the word and then reads
 * holder. All are sequentially consistent, so one of the two sees the other's. GIVEN may come late, when the thread has
 * seen holder already: then its next sleep ends at once, and it looks again.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "core/log.h"
#include "engine/det/hints.h"
#include "engine/det/places.h"
#include "engine/det/site.h"
#include "os/memory.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/park.h"

enum { AWAKE = DET_AWAKE, ASLEEP, GIVEN };

struct det_round *det_round;
bool det_is_serial;
_Thread_local struct det_self det_self __attribute__((tls_model("initial-exec")));

static uint32_t *word_of(uint32_t number) {
    return det_word(det_root(number));
}

/*
 * Relaxed: an offer that comes too late to be seen here is taken back by its thread, which is given the turn; and one
 * that is seen is looked at again with the lock.
 */
void det_give(uint32_t to) {
    if (to != TURN_NO_THREAD && __atomic_load_n(&det_round->turn.offer[to], __ATOMIC_RELAXED) == TURN_OFFERED)
        to = det_serve(to);
    if (to == TURN_NO_THREAD)
        return;
    if (to != det_self.number)
        det_wake_released(to);
    det_call_looker(to);
}

void det_wake_released(uint32_t number) {
    uint32_t *word = word_of(number);
    if (__atomic_exchange_n(word, GIVEN, __ATOMIC_SEQ_CST) == ASLEEP)
        sbt_wake(word, 1);
}

void det_wake_waiter(uint32_t number) {
    uint32_t *word = word_of(number), asleep = ASLEEP;
    if (__atomic_compare_exchange_n(word, &asleep, AWAKE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        sbt_wake(word, 1);
}

static bool has_turn(uint32_t number) {
    return __atomic_load_n(&det_round->turn.holder, __ATOMIC_SEQ_CST) == number;
}

/* The deadline has passed outside. */
static void is_overdue(uint32_t number) {
    struct det_round *r = det_round;
    uint32_t next = TURN_NO_THREAD;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    turn_overdue(&r->turn, number);
    if (r->turn.holder == TURN_NO_THREAD)
        next = turn_choose(&r->turn);
    sbt_lock_drop(&r->lock);
    if (next != number)
        det_give(next);
    sbt_handlers_release();
}

/* A handler has run: the thread comes back as from outside. False: it has been woken already. */
static bool is_interrupted(uint32_t number) {
    struct det_round *r = det_round;
    bool is_blocked;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    is_blocked = r->turn.thread[number].state == TURN_BLOCKED;
    if (is_blocked) {
        turn_wake_thread(&r->turn, number, TURN_INTERRUPTED);
        det_returned(number, SCHEDULE_FROM_HANDLER);
        if (r->turn.holder == TURN_NO_THREAD)
            turn_choose(&r->turn);
    }
    sbt_lock_drop(&r->lock);
    sbt_handlers_release();
    return is_blocked;
}

/* The thread was expelled, or absent: it returns from outside, if it is there. */
static void is_present(uint32_t number) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    if (turn_present(&r->turn, number)) {
        det_returned(number, SCHEDULE_FROM_ABSENCE);
        if (r->turn.holder == TURN_NO_THREAD)
            turn_choose(&r->turn);
    }
    sbt_lock_drop(&r->lock);
}

/* A wait for the turn. */
struct turn_wait {
    uint32_t number, generation; /* of the round in which it began */
    const struct det_wait *wait;
    const struct sbt_deadline *deadline; /* NULL: none, or it has passed */
    bool is_blocked;                     /* det_block's: the thread stands aside */
};

/*
 * The process is a child that a handler has forked; or a handler has made an operation under the number that a guest
 * waits with, which is gone with that.
 */
static bool is_over(const struct turn_wait *w) {
    return w->generation != sbt_fork_generation() + 1 || (!w->is_blocked && det_self.number != w->number) ||
           (w->wait->is_offer && det_self.offers == 0);
}

/*
 * It was given the turn, did not come for long, and was expelled; or it was absent, and has been woken. Not so of a
 * thread with its creation under way: its creator takes it into the round. Acquire pairs with det_create_end's release:
 * a thread that is not new any more is seen in the round.
 */
static bool is_outside(uint32_t number) {
    return __atomic_load_n(&det_round->thread[number].is_new, __ATOMIC_ACQUIRE) == 0 &&
           turn_state_of(&det_round->turn, number) == TURN_OUTSIDE;
}

/* A handler has run. It was no wait of its own that it interrupted: that one has noted it for itself. */
static bool must_look_again(const struct turn_wait *w) {
    return w->is_blocked && w->wait->looks_again && det_self.has_handled;
}

/* Without the turn. */
static bool may_go_on(const struct turn_wait *w) {
    return w->wait->goes_on && det_is_released(w->number);
}

/* A handler may have run before, and have changed each of these. */
static bool must_look(const struct turn_wait *w) {
    return is_over(w) || has_turn(w->number) || may_go_on(w) || (w->is_blocked && det_self.is_absent) ||
           must_look_again(w) || is_outside(w->number);
}

static void spin_for_turn(const struct turn_wait *w) {
    struct sbt_adapt *memory = &det_round->thread[w->number].adapt;
    struct sbt_active active;
    sbt_active_begin(&active, memory);
    while (!must_look(w) && sbt_active_step(&active))
        ;
    sbt_active_end(&active, memory);
}

/*
 * By the thread that has the turn: the thread waits for that, or for turns of others (in a section, or with a soft
 * deadline), or its deadline has passed and logical time stands still.
 */
static bool is_kept_waiting(const struct turn_wait *w) {
    const struct turn *t = &det_round->turn;
    enum turn_state state = turn_state_of(t, w->number);
    return state == TURN_RUNNABLE || state == TURN_SECTION || w->wait->turns != 0 ||
           __atomic_load_n(&t->thread[w->number].overdue, __ATOMIC_RELAXED);
}

/*
 * Where threads are interrupted, a wait that can fail with EINTR sleeps on its home thread: only there a signal that
 * the thread blocks does not end it.
 */
static int park(const struct turn_wait *w, uint32_t *word, const struct sbt_deadline *deadline) {
    if (w->wait->can_interrupt && sbt_switch_interrupts)
        return sbt_park_own(word, ASLEEP, NULL, deadline, false);
    return sbt_park(word, ASLEEP, deadline);
}

/*
 * The thread looks no more for stalls. One with an offer that was served may have begun to look behind that: then the
 * thread that passed the turn on has seen a looker, and called none.
 */
static void look_no_more(const struct turn_wait *w) {
    const struct det_round *r = det_round;
    bool looked = __atomic_load_n(&r->thread[w->number].looks, __ATOMIC_SEQ_CST) != 0;
    det_look_no_more(w->number);
    uint32_t holder = __atomic_load_n(&r->turn.holder, __ATOMIC_SEQ_CST);
    if (!looked || !w->wait->is_offer || holder == TURN_NO_THREAD)
        return;
    sbt_handlers_hold();
    det_call_looker(holder);
    sbt_handlers_release();
}

/* One sleep. */
static void sleep_once(struct turn_wait *w, uint32_t *word) {
    struct sbt_deadline soon;
    if (is_kept_waiting(w))
        det_look(w->number);
    bool is_watching = is_kept_waiting(w); /* it may have been served: then it does not look */
    if (is_watching)
        soon = sbt_deadline_in(det_look_every_ns());
    else
        look_no_more(w);
    int r = park(w, word, is_watching ? &soon : w->deadline);
    if (is_over(w))
        return;
    if (is_watching && r != 0) /* signals may come faster than the time to look */
        det_look_for_stall();
    if (r == ETIMEDOUT && !is_watching) {
        w->deadline = NULL;
        is_overdue(w->number);
    } else if (r == EINTR && w->wait->can_interrupt) {
        det_self.has_handled = false;
        is_interrupted(w->number);
    }
}

/* Handlers may run. */
static void wait_for_turn(struct turn_wait *w) {
    uint32_t *word = word_of(w->number), *waits = &det_round->thread[w->number].waits;
    __atomic_store_n(waits, 1, __ATOMIC_RELAXED);
    if (is_kept_waiting(w))
        det_look(w->number);
    if (w->wait->deadline == NULL)
        spin_for_turn(w);
    while (!must_look(w)) {
        __atomic_store_n(word, ASLEEP, __ATOMIC_SEQ_CST);
        if (must_look(w))
            break;
        sleep_once(w, word);
    }
    __atomic_store_n(word, AWAKE, __ATOMIC_SEQ_CST);
    __atomic_store_n(waits, 0, __ATOMIC_RELAXED);
    if (!is_over(w)) /* else the number may be another thread's */
        look_no_more(w);
}

/*
 * Until the caller has the turn with handlers deferred, or is released: a handler in between may have passed it. False:
 * the wait is over without.
 */
static bool take_turn(struct turn_wait *w) {
    for (;;) {
        __atomic_store_n(&det_self.in_op, 1, __ATOMIC_SEQ_CST);
        if (is_over(w))
            return false;
        if (is_outside(w->number) || (w->is_blocked && det_self.is_absent))
            is_present(w->number);
        if (must_look_again(w)) {
            det_self.has_handled = false;
            det_self.is_restarted |= is_interrupted(w->number); /* another handler may have come before the turn */
        }
        if (w->is_blocked)
            det_self.is_absent = false;
        if (has_turn(w->number) || may_go_on(w))
            return true;
        __atomic_store_n(&det_self.in_op, 0, __ATOMIC_SEQ_CST);
        sbt_handlers_release();
        wait_for_turn(w);
        sbt_handlers_hold();
    }
}

/* The process's first operation, or a forked child's. There is no other thread. */
static void begin_round(void) {
    struct det_round *r = det_round;
    bool is_forked = r->generation != 0;
    if (is_forked) {
        sbt_memory_clear(r, sizeof *r);
        det_watch_forked();
    }
    turn_begin(&r->turn, sbt_options.value[SBT_OPT_SEED].u);
    r->generation = sbt_fork_generation() + 1;
    r->process = sbt_syscall0(SYS_getpid);
    det_adopt_unknown(0, false);
    det_site_warm();
    det_places_begin();
    r->is_timed = sbt_options.value[SBT_OPT_SCHEDULE_TIMES].u != 0;
    r->is_logged = det_schedule_begin(sbt_options.value[SBT_OPT_SEED].u, is_forked, det_hints_begin());
}

static bool is_enabled(void) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, NULL);
    return state == PTHREAD_CANCEL_ENABLE;
}

/* A cancellation that came before the wait. */
static bool is_cancelled(void) {
    return SBT_UNLIKELY(det_round->thread[det_root(det_self.number)].is_cancelled) && !det_self.is_exiting &&
           is_enabled();
}

/*
 * With asynchronous cancellation the signal of a cancellation may strike while the thread waits for the turn, or has
 * it: the others would wait for the turn that it takes to its end. So the type is deferred in a wait, and a thread that
 * has been cancelled meanwhile gives the turn up before the type is what it was. Not in an operation inside of another.
 */
static SBT_NOINLINE void be_asynchronous_again(void) {
    if (is_cancelled()) {
        det_self.is_exiting = true;
        det_pass();
    }
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

void det_take_slow(void) {
    const struct det_wait wait = {.deadline = NULL};
    struct turn_wait w;
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (SBT_UNLIKELY(det_round->is_timed))
        det_self.arrived_ns = sbt_now_ns();
    do {
        if (det_self.offers != 0)
            det_look_at_offer();
        if (det_round->generation != sbt_fork_generation() + 1)
            begin_round();
        if (det_self.generation != det_round->generation || det_self.number == DET_NO_NUMBER)
            det_join_round();
        w = (struct turn_wait){.number = det_self.number, .generation = det_round->generation, .wait = &wait};
    } while (!take_turn(&w));
    if (SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS))
        be_asynchronous_again();
}

bool det_await_served(const struct det_wait *wait) {
    struct turn_wait w = {
        .number = det_self.offers - 1, .generation = det_round->generation, .wait = wait, .is_blocked = true};
    return take_turn(&w);
}

void det_pass_slow(void) {
    struct det_round *r = det_round;
    uint32_t number = det_self.number;
    if (SBT_UNLIKELY(det_self.hint != NULL) && !det_self.is_guest && det_hints_pass())
        return;
    sbt_lock_take(&r->lock);
    if (det_self.is_guest)
        turn_end(&r->turn);
    uint32_t next = turn_pass(&r->turn);
    if (det_self.is_guest) {
        turn_release(&r->turn, number);
        det_set_alias(&r->thread[number], 0);
    }
    sbt_lock_drop(&r->lock);
    if (det_self.is_guest) {
        det_self.is_guest = false;
        det_self.number = DET_NO_NUMBER;
    }
    det_give(next);
    if (SBT_UNLIKELY(det_is_serial))
        det_wait_serially();
}

/*
 * A fiber that is given the turn is queued behind its giver, and would wait until that has computed. All others wait
 * for the turn. So the giver is queued behind it instead. Not in a handler that has interrupted switch/.
 */
void det_make_way(void) {
    if (sbt_switch_wanted && !det_is_serial && det_self.number != DET_NO_NUMBER && sbt_self.in_switch == 0 &&
        !det_has_turn())
        sbt_switch_yield(false);
}

void det_wait_serially(void) {
    const struct det_wait wait = {.deadline = NULL};
    struct turn_wait w = {.number = det_self.number, .generation = det_round->generation, .wait = &wait};
    if (det_self.number != DET_NO_NUMBER)
        take_turn(&w);
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELEASE);
}

/* ---- blocking ---- */

void det_cancel_has_acted(void) {
    det_self.is_exiting = true;
}

/* If pthread_testcancel returns, the thread ends already. */
void det_take_cancelable(enum det_op op) {
    for (;;) {
        pthread_testcancel();
        det_take(op);
        if (!is_cancelled())
            return;
        det_pass();
        pthread_testcancel();
        det_self.is_exiting = true;
    }
}

static uint64_t due_of(const struct det_wait *wait) {
    return wait->turns != 0         ? det_round->turn.now + wait->turns * TURN_NS
           : wait->deadline == NULL ? TURN_NEVER
           : wait->ns != 0          ? det_round->turn.now + wait->ns
                                    : det_logical(wait->deadline);
}

/* How the wait has ended is part of the schedule. */
static void resume(enum turn_reason reason) {
    struct det_round *r = det_round;
    r->hash = schedule_hash_resume(r->hash, det_self.number, (enum schedule_reason)reason);
    if (det_is_watched())
        det_watch_resume(reason);
}

/* A wait in a handler does not hide from the interrupted one that a handler has run. */
static bool begin_to_look(const struct det_wait *wait) {
    bool had_handled = det_self.has_handled;
    det_self.has_handled = false;
    if (!wait->looks_again)
        return had_handled;
    det_self.is_restarted = false;
    sbt_self.waiter = (struct sbt_waiter *)(void *)&det_self; /* for sbt_handlers_interrupt, which does not look */
    return had_handled;
}

static void end_to_look(const struct det_wait *wait, bool had_handled) {
    if (wait->looks_again)
        sbt_self.waiter = NULL;
    det_self.has_handled = had_handled;
}

enum turn_reason det_block(const void *key, const struct det_wait *wait) {
    struct det_round *r = det_round;
    struct turn_wait w = {.number = det_self.number,
                          .generation = r->generation,
                          .wait = wait,
                          .deadline = wait->deadline,
                          .is_blocked = true};
    struct det_aside aside;
    int type;
    if (wait->can_cancel && is_cancelled())
        return TURN_CANCELLED;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    bool is_async = SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS);
    bool can_cancel = (wait->can_cancel || is_async) && !det_self.is_exiting && is_enabled();
    uint64_t due = due_of(wait);
    uint32_t n_inner = det_self.n_inner; /* operations of handlers meanwhile are inside of none */
    det_self.n_inner = 0;
    det_self.last_ns = r->turn.now;
    bool had_handled = begin_to_look(wait);
    det_stand_aside(&aside);
    sbt_lock_take(&r->lock);
    turn_block(&r->turn, (uintptr_t)key, due, wait->tag, can_cancel);
    if (wait->turns != 0)
        turn_soften(&r->turn);
    r->turn.thread[w.number].bits = wait->bits;
    __atomic_store_n(&r->thread[w.number].release, wait->goes_on ? DET_GOES_ON : DET_NEEDS_TURN, __ATOMIC_RELAXED);
    uint32_t next = turn_pass(&r->turn);
    sbt_lock_drop(&r->lock);
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELAXED);
    if (next != w.number)
        det_give(next);
    bool has_it = take_turn(&w);
    end_to_look(wait, had_handled);
    det_self.n_inner = n_inner;
    if (!is_async || !has_it)
        pthread_setcanceltype(type, NULL);
    if (!has_it) { /* in a child: it looks again */
        det_take_slow();
        return TURN_WOKEN;
    }
    det_come_back(&aside);
    if (may_go_on(&w)) {
        det_go_on();
        if (is_async)
            pthread_setcanceltype(type, NULL);
        return TURN_WOKEN;
    }
    enum turn_reason reason = (enum turn_reason)r->turn.thread[w.number].reason;
    resume(reason);
    if (is_async)
        be_asynchronous_again();
    if (reason == TURN_TIMED_OUT && wait->deadline != NULL)
        det_sleep_off(wait->deadline);
    return reason;
}

uint32_t det_wake(const void *key, uint32_t n) {
    struct det_round *r = det_round;
    if (__atomic_load_n(&r->turn.queue[turn_queue_of((uintptr_t)key)].first, __ATOMIC_RELAXED) == 0)
        return 0; /* only the holder adds to a queue */
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
