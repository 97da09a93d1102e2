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

static void give(uint32_t to) {
    if (to == TURN_NO_THREAD || to == det_self.number)
        return;
    uint32_t *word = &det_round->thread[to].word;
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
        give(next);
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

/* Handlers may run. */
static void wait_for_turn(uint32_t number, const struct det_wait *wait) {
    const struct sbt_deadline *deadline = wait->deadline;
    uint32_t *word = &det_round->thread[number].word;
    if (deadline == NULL)
        spin_for_turn(number);
    while (!has_turn(number)) {
        __atomic_store_n(word, ASLEEP, __ATOMIC_SEQ_CST);
        if (has_turn(number))
            break;
        int r = sbt_park(word, ASLEEP, deadline);
        if (r == ETIMEDOUT) {
            is_overdue(number);
            deadline = NULL;
        } else if (r == EINTR && wait->can_interrupt) {
            is_interrupted(number);
        }
    }
    __atomic_store_n(word, AWAKE, __ATOMIC_SEQ_CST);
}

/* Until the caller has the turn with handlers deferred: a handler in between may have passed it. */
static void take_turn(uint32_t number, const struct det_wait *wait) {
    while (!has_turn(number)) {
        sbt_handlers_release();
        wait_for_turn(number, wait);
        sbt_handlers_hold();
    }
}

void det_adopt(uint32_t number) {
    det_self.number = number;
    det_self.waiting = 0;
    det_self.is_guest = false;
    det_self.generation = det_round->generation;
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
    if (det_self.generation == r->generation && det_self.waiting != 0) {
        det_self.number = number;
        det_self.is_guest = true;
        return;
    }
    det_adopt(number);
    det_thread_enter();
}

void det_take_slow(void) {
    if (det_round->generation != sbt_fork_generation() + 1)
        begin_round();
    if (det_self.generation != det_round->generation || det_self.number == TURN_NO_THREAD)
        join_round();
    take_turn(det_self.number, &(struct det_wait){.deadline = NULL});
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
    sbt_lock_drop(&r->lock);
    if (det_self.is_guest) {
        det_self.is_guest = false;
        det_self.number = TURN_NO_THREAD;
    }
    give(next);
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
    give(next);
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
    uint32_t waited_before = det_self.waiting;
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
    if (next != number)
        give(next);
    take_turn(number, wait);
    come_back(number, waited_before, was_guest);
    pthread_setcanceltype(type, NULL);
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
    if (det_self.is_guest) { /* a handler's: its thread is aside anyway */
        det_pass();
        return;
    }
    det_self.last_ns = r->turn.now;
    stand_aside(&was_guest);
    sbt_lock_take(&r->lock);
    turn_leave(&r->turn);
    uint32_t next = turn_pass(&r->turn);
    sbt_lock_drop(&r->lock);
    give(next);
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
