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
 * holder. All are sequentially consistent, so one of the two sees the other's. Both write the word by an exchange:
 * qemu's user mode on x86-64 lets an aarch64 load with acquire go before a store with release. GIVEN may come late,
 * when the thread has seen holder already: then its next sleep ends at once, and it looks again.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "core/log.h"
#include "engine/det/hints.h"
#include "engine/det/type.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/park.h"

enum { AWAKE = DET_AWAKE, ASLEEP, GIVEN };

struct det_round det_round[1]; /* at an address that the linker knows: an operation reads no pointer to it */
bool det_is_serial;
_Thread_local struct det_self det_self __attribute__((tls_model("initial-exec"))) = {.number = DET_NO_NUMBER};

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

void det_wake_again(uint32_t number) {
    uint32_t *word = word_of(number);
    __atomic_store_n(word, AWAKE, __ATOMIC_SEQ_CST);
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

void det_be_present(void) {
    if (turn_state_of(&det_round->turn, det_self.number) != TURN_OUTSIDE)
        return;
    sbt_handlers_hold();
    is_present(det_self.number);
    sbt_handlers_release();
}

/* A wait for the turn. */
struct turn_wait {
    uint32_t number, generation; /* of the round in which it began */
    const struct det_wait *wait;
    const struct sbt_deadline *deadline; /* NULL: none, or it has passed */
    bool is_blocked;                     /* det_block's: the thread stands aside */
    uint32_t n_interrupts;               /* the thread's when it began */
    unsigned n_looks;                    /* for a deadlock, so far */
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
    return det_may_go_on(w->wait, w->number);
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

/* In place of a sleep without an end, which the kernel restarts behind a handler with SA_RESTART, but none with one. */
static int sleep_and_look(struct turn_wait *w, uint32_t *word, uint64_t logical) {
    struct sbt_deadline soon = sbt_deadline_in(det_stuck_ns(w->n_looks));
    struct sbt_waiter *waiter = sbt_self.waiter;
    uint32_t n_restarts = det_self.n_restarts, n_interrupts = det_self.n_interrupts;
    if (w->wait->can_interrupt)
        sbt_self.waiter = (struct sbt_waiter *)(void *)&det_self; /* for det_handler_runs */
    int r = park(w, word, &soon);
    if (r == ETIMEDOUT && !is_over(w)) {
        w->n_looks++;
        det_look_for_deadlock(logical);
    }
    sbt_self.waiter = waiter;
    if (det_self.n_interrupts != n_interrupts) /* in the look, perhaps */
        return EINTR;
    return r == ETIMEDOUT || det_self.n_restarts != n_restarts ? 0 : r;
}

/* One sleep. */
static void sleep_once(struct turn_wait *w, uint32_t *word) {
    struct sbt_deadline soon;
    uint64_t logical;
    if (is_kept_waiting(w))
        det_look(w->number);
    bool is_watching = is_kept_waiting(w); /* it may have been served: then it does not look */
    if (!is_watching)
        look_no_more(w);
    bool is_stuck = !is_watching && w->deadline == NULL && det_is_stuck(&logical);
    if (is_watching)
        soon = sbt_deadline_in(det_look_every_ns());
    int r = is_stuck ? sleep_and_look(w, word, logical) : park(w, word, is_watching ? &soon : w->deadline);
    if (is_over(w))
        return;
    bool looks = is_watching && r != 0; /* signals may come faster than the time to look */
    if (looks && !det_look_for_stall() && w->wait->deadline != NULL)
        det_look_for_late(w->number, w->wait->deadline);
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
        (void)__atomic_exchange_n(word, ASLEEP, __ATOMIC_SEQ_CST);
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
 * A handler has come before the kernel's sleep, or has ended it. If it restarts system calls, and the word is what it
 * was, the wait goes on. It does not leave the queue to look again when it has the turn: a waker that has counted it
 * would not find it. One that changes the word behind this look finds it.
 */
static void look_again(struct turn_wait *w) {
    bool restarts = det_self.n_interrupts == w->n_interrupts;
    det_self.has_handled = false;
    if (restarts && w->wait->deadline == NULL && det_futex_compare(w->wait->word, w->wait->expected) == 0)
        return;
    bool is_one = is_interrupted(w->number); /* another handler may have come before the turn */
    det_self.is_restarted |= is_one && restarts;
}

/*
 * Until the caller has the turn with handlers deferred, or is released: a handler in between may have passed it. False:
 * the wait is over without.
 */
static bool wait_and_take(struct turn_wait *w) {
    for (;;) {
        __atomic_store_n(&det_self.in_op, 1, __ATOMIC_SEQ_CST);
        if (is_over(w))
            return false;
        if (is_outside(w->number) || (w->is_blocked && det_self.is_absent))
            is_present(w->number);
        if (must_look_again(w))
            look_again(w);
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

/*
 * A handler has left the wait by a jump, or ends the thread. A guest's number is free again: no operation may come that
 * takes its turn.
 */
static void left(void *wait) {
    const struct turn_wait *w = wait;
    struct det_aside aside = {.number = w->number, .waiting = det_self.waiting, .is_absent = det_self.is_absent};
    if (is_over(w))
        return; /* the number may be another thread's */
    __atomic_store_n(&det_round->thread[w->number].waits, 0, __ATOMIC_RELAXED);
    det_look_no_more(w->number);
    if (!w->is_blocked && det_self.is_guest)
        det_left_wait(&aside);
}

static bool take_turn(struct turn_wait *w) {
    struct _pthread_cleanup_buffer jumped;
    _pthread_cleanup_push(&jumped, left, w);
    bool has_it = wait_and_take(w);
    _pthread_cleanup_pop(&jumped, 0);
    return has_it;
}

void det_take_slow(void) {
    const struct det_wait wait = {.deadline = NULL};
    struct turn_wait w;
    struct _pthread_cleanup_buffer kept;
    bool is_async = det_type_defer(&kept);
    if (SBT_UNLIKELY(det_round->is_timed))
        det_self.arrived_ns = sbt_now_ns();
    do {
        if (det_self.offers != 0)
            det_look_at_offer();
        if (det_round->generation != sbt_fork_generation() + 1)
            det_begin_round();
        if (det_self.generation != det_round->generation || det_self.number == DET_NO_NUMBER)
            det_join_round();
        w = (struct turn_wait){.number = det_self.number, .generation = det_round->generation, .wait = &wait};
    } while (!take_turn(&w));
    if (SBT_UNLIKELY(det_self.is_new))
        det_newcomer_has_turn();
    if (SBT_UNLIKELY(is_async)) {
        det_be_asynchronous_again();
        det_type_forget(&kept);
    }
}

bool det_await_woken(const struct det_wait *wait, uint32_t number, uint32_t generation) {
    struct turn_wait w = {.number = number,
                          .generation = generation,
                          .wait = wait,
                          .deadline = wait->deadline,
                          .is_blocked = true,
                          .n_interrupts = det_self.n_interrupts};
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
