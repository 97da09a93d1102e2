/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for the turn.
 *
 * `holder` says who has the turn. A thread that waits sleeps on its own word:
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

#include "core/handlers.h"
#include "core/log.h"
#include "engine/det/det.h"
#include "os/futex.h"
#include "os/memory.h"
#include "wait/adapt.h"
#include "wait/park.h"

enum { AWAKE, ASLEEP, GIVEN };

struct det_round *det_round;
_Thread_local struct det_self det_self __attribute__((tls_model("initial-exec")));

void det_give(uint32_t to) {
    if (to == TURN_NO_THREAD || to == det_self.number)
        return;
    uint32_t alias = det_round->thread[to].alias;
    uint32_t *word = &det_round->thread[alias != 0 ? alias - 1 : to].word;
    if (__atomic_exchange_n(word, GIVEN, __ATOMIC_SEQ_CST) == ASLEEP)
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

/* A handler has run: the thread comes back as from outside, unless it has been woken already. */
static void is_interrupted(uint32_t number) {
    struct det_round *r = det_round;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    if (r->turn.thread[number].state == TURN_BLOCKED) {
        turn_wake_thread(&r->turn, number, TURN_INTERRUPTED);
        r->n_outside++;
        if (r->turn.holder == TURN_NO_THREAD)
            turn_choose(&r->turn);
    }
    sbt_lock_drop(&r->lock);
    sbt_handlers_release();
}

static void spin_for_turn(uint32_t number) {
    struct sbt_adapt *memory = &det_round->thread[number].adapt;
    struct sbt_active active;
    sbt_active_begin(&active, memory);
    while (!has_turn(number) && sbt_active_step(&active))
        ;
    sbt_active_end(&active, memory);
}

static uint64_t look_every_ns(void) {
    return sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE ? DET_STALL_RELEASE_NS : DET_STALL_NS;
}

/* A wait for the turn. In a child that a handler has forked meanwhile it is over. */
struct turn_wait {
    uint32_t number, generation; /* of the round in which it began */
    const struct det_wait *wait;
    const struct sbt_deadline *deadline; /* NULL: none, or it has passed */
    struct det_look look;
};

static bool is_forked(const struct turn_wait *w) {
    return w->generation != sbt_fork_generation() + 1;
}

/*
 * The interrupted thread of a guest may be given the turn meanwhile, and cannot use it before the handler returns. So
 * the guest uses it.
 */
static bool has_any_turn(uint32_t number) {
    uint32_t alias = det_round->thread[number].alias;
    return has_turn(number) || (alias != 0 && has_turn(alias - 1));
}

/* By the thread that has the turn: it waits for that, or its deadline has passed and logical time stands still. */
static bool is_kept_waiting(uint32_t number) {
    const struct turn_thread *thread = &det_round->turn.thread[number];
    return __atomic_load_n(&thread->state, __ATOMIC_RELAXED) == TURN_RUNNABLE ||
           __atomic_load_n(&thread->overdue, __ATOMIC_RELAXED);
}

/* One sleep. */
static void sleep_once(struct turn_wait *w, uint32_t *word) {
    struct sbt_deadline soon;
    bool is_watching = w->deadline == NULL && is_kept_waiting(w->number);
    if (is_watching)
        soon = sbt_deadline_in(look_every_ns());
    int r = sbt_park(word, ASLEEP, is_watching ? &soon : w->deadline);
    if (is_forked(w))
        return;
    if (r == ETIMEDOUT && is_watching) {
        det_look_for_stall(&w->look);
    } else if (r == ETIMEDOUT) {
        w->deadline = NULL;
        is_overdue(w->number);
    } else if (r == EINTR && w->wait->can_interrupt) {
        is_interrupted(w->number);
    }
}

/* Handlers may run. */
static void wait_for_turn(struct turn_wait *w) {
    uint32_t alias = det_round->thread[w->number].alias;
    uint32_t *word = &det_round->thread[alias != 0 ? alias - 1 : w->number].word;
    if (w->wait->deadline == NULL)
        spin_for_turn(w->number);
    while (!is_forked(w) && !has_any_turn(w->number)) {
        __atomic_store_n(word, ASLEEP, __ATOMIC_SEQ_CST);
        if (is_forked(w) || has_any_turn(w->number))
            break;
        sleep_once(w, word);
    }
    __atomic_store_n(word, AWAKE, __ATOMIC_SEQ_CST);
}

/* The guest's number is not needed: the handler goes on under the number of the interrupted thread. */
static void borrow(uint32_t guest) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    det_self.number = r->thread[guest].alias - 1;
    turn_release(&r->turn, guest);
    r->thread[guest].alias = 0;
    sbt_lock_drop(&r->lock);
    det_self.is_guest = false;
    det_self.borrows = true;
}

/* It was expelled: it returns from outside. */
static void return_if_outside(uint32_t number) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    if (r->turn.thread[number].state == TURN_OUTSIDE) {
        turn_return(&r->turn, number);
        r->n_outside++;
        if (r->turn.holder == TURN_NO_THREAD)
            turn_choose(&r->turn);
    }
    sbt_lock_drop(&r->lock);
}

/*
 * Until the caller has the turn with handlers deferred: a handler in between may have passed it. False: the process is
 * a child that a handler has forked.
 */
static bool take_turn(uint32_t number, uint32_t generation, const struct det_wait *wait) {
    struct turn_wait w = {.number = number, .generation = generation, .wait = wait, .deadline = wait->deadline};
    for (;;) {
        __atomic_store_n(&det_self.in_op, 1, __ATOMIC_SEQ_CST);
        if (is_forked(&w))
            return false;
        if (has_any_turn(number))
            return true;
        __atomic_store_n(&det_self.in_op, 0, __ATOMIC_SEQ_CST);
        sbt_handlers_release();
        wait_for_turn(&w);
        sbt_handlers_hold();
    }
}

void det_adopt(uint32_t number) {
    det_self.number = number;
    det_self.waiting = 0;
    det_self.is_guest = det_self.borrows = det_self.is_ended = false;
    det_self.generation = det_round->generation;
    det_round->thread[number].in_op = &det_self.in_op;
    det_round->thread[number].alias = 0;
}

/* The process's first operation, or a forked child's. There is no other thread. */
static void begin_round(void) {
    struct det_round *r = det_round;
    if (r->generation != 0)
        sbt_memory_clear(r, sizeof *r);
    turn_begin(&r->turn, sbt_options.value[SBT_OPT_SEED].u);
    r->generation = sbt_fork_generation() + 1;
    det_adopt(0);
    r->thread[0].handle = pthread_self();
    r->thread[0].has_handle = true;
}

/*
 * A thread that the round does not know, or a handler's guest. It may come at any time, so it comes from outside.
 */
static void join_round(void) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    uint32_t number = turn_create(&r->turn);
    r->n_outside++;
    if (number != TURN_NO_THREAD && r->turn.holder == TURN_NO_THREAD)
        turn_choose(&r->turn);
    sbt_lock_drop(&r->lock);
    if (number == TURN_NO_THREAD) {
        sbt_log(0, "the engine det has no room for another thread", NULL);
        __builtin_trap();
    }
    if (det_self.generation == r->generation && (det_self.waiting != 0 || det_self.is_ended)) {
        uint32_t waiting = det_self.waiting;
        det_self.number = number;
        det_self.is_guest = true;
        r->thread[number].in_op = &det_self.in_op;
        r->thread[number].alias = waiting == 0                        ? 0
                                  : r->thread[waiting - 1].alias != 0 ? r->thread[waiting - 1].alias
                                                                      : waiting;
        return;
    }
    det_adopt(number);
    det_thread_enter();
}

void det_take_slow(void) {
    const struct det_wait wait = {.deadline = NULL};
    do {
        if (det_round->generation != sbt_fork_generation() + 1)
            begin_round();
        if (det_self.generation != det_round->generation || det_self.number == TURN_NO_THREAD)
            join_round();
        else
            return_if_outside(det_self.number);
    } while (!take_turn(det_self.number, det_round->generation, &wait));
    if (!has_turn(det_self.number))
        borrow(det_self.number);
}

void det_pass_slow(void) {
    struct det_round *r = det_round;
    uint32_t number = det_self.number;
    sbt_lock_take(&r->lock);
    if (det_self.is_guest)
        turn_end(&r->turn);
    uint32_t next = turn_pass(&r->turn);
    if (det_self.is_guest)
        turn_release(&r->turn, number);
    r->thread[number].alias = 0;
    sbt_lock_drop(&r->lock);
    if (det_self.is_guest || det_self.borrows) {
        det_self.is_guest = det_self.borrows = false;
        det_self.number = TURN_NO_THREAD;
    }
    det_give(next);
}

void det_end_thread(void) {
    struct det_round *r = det_round;
    det_take(DET_END);
    sbt_lock_take(&r->lock);
    uint32_t number = det_self.number;
    turn_wake(&r->turn, (uintptr_t)&r->thread[number], UINT32_MAX);
    turn_end(&r->turn);
    uint32_t next = turn_pass(&r->turn);
    if (!r->thread[number].has_handle)
        turn_release(&r->turn, number);
    sbt_lock_drop(&r->lock);
    det_self.number = TURN_NO_THREAD;
    det_self.waiting = 0;
    det_self.is_ended = true;
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELAXED);
    det_give(next);
    sbt_handlers_release();
}

/* ---- blocking ---- */

/* While a thread is blocked or outside, the operations of its signal handlers are a guest's. */
static uint32_t stand_aside(bool *was_guest) {
    uint32_t number = det_self.number;
    *was_guest = det_self.is_guest;
    det_self.is_guest = false;
    det_self.waiting = number + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    det_self.number = TURN_NO_THREAD;
    return number;
}

static void come_back(uint32_t number, uint32_t waited_before, bool was_guest) {
    det_self.number = number;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    det_self.waiting = waited_before;
    det_self.is_guest = was_guest;
}

enum turn_reason det_block(const void *key, const struct det_wait *wait) {
    struct det_round *r = det_round;
    uint32_t waited_before = det_self.waiting, generation = r->generation;
    bool was_guest;
    int type, state;
    uint64_t due = wait->deadline == NULL ? TURN_NEVER
                   : wait->ns != 0        ? r->turn.now + wait->ns
                                          : det_logical(wait->deadline);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, NULL);
    det_self.last_ns = r->turn.now;
    uint32_t number = stand_aside(&was_guest);
    sbt_lock_take(&r->lock);
    turn_block(&r->turn, (uintptr_t)key, due, wait->tag, wait->can_cancel && state == PTHREAD_CANCEL_ENABLE);
    uint32_t next = turn_pass(&r->turn);
    sbt_lock_drop(&r->lock);
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELAXED);
    if (next != number)
        det_give(next);
    bool has_it = take_turn(number, generation, wait);
    pthread_setcanceltype(type, NULL);
    if (!has_it) {
        det_take_slow();
        return TURN_INTERRUPTED;
    }
    come_back(number, waited_before, was_guest);
    enum turn_reason reason = (enum turn_reason)r->turn.thread[number].reason;
    if (reason == TURN_TIMED_OUT)
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

/* ---- outside ---- */

void det_outside_begin(void) {
    struct det_round *r = det_round;
    bool was_guest;
    det_take(DET_LEAVE);
    if (det_self.is_guest || det_self.borrows) { /* a handler's: its thread is aside anyway */
        det_pass();
        return;
    }
    det_self.last_ns = r->turn.now;
    stand_aside(&was_guest);
    sbt_lock_take(&r->lock);
    turn_leave(&r->turn);
    uint32_t next = turn_pass(&r->turn);
    sbt_lock_drop(&r->lock);
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELAXED);
    det_give(next);
    sbt_handlers_release();
}

void det_outside_end(void) {
    struct det_round *r = det_round;
    sbt_handlers_hold();
    if (det_round->generation == sbt_fork_generation() + 1 && det_self.generation == r->generation &&
        det_self.waiting != 0 && r->turn.thread[det_self.waiting - 1].state == TURN_OUTSIDE) {
        uint32_t number = det_self.waiting - 1;
        sbt_lock_take(&r->lock);
        turn_return(&r->turn, number);
        r->n_outside++;
        if (r->turn.holder == TURN_NO_THREAD)
            turn_choose(&r->turn);
        sbt_lock_drop(&r->lock);
        come_back(number, 0, false);
    }
    sbt_handlers_release();
}
