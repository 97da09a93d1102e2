/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_once, above any engine: a word that says not begun, running, or done, with glibc's value for done.
 *
 * A running initialiser may be cancelled, end its thread, or throw. Then a clean-up resets the word, so that another
 * thread tries. There are two clean-ups, and the first to run resets the word:
 *  - The unwinder's: only this one sees an exception.
 *  - glibc's list of registered clean-ups, which glibc's own pthread_once uses too. A cancellation and the end of a
 *    thread do not unwind past an initialiser that was built without unwind tables; the list sees them all the same.
 *
 * An initialiser that was running when the process forked does not run in the child. So the word holds the fork
 * generation of the process in which it began, and a child begins anew.
 */
#include <limits.h>

#include "abi/abi.h"
#include "os/cleanup.h"
#include "os/futex.h"
#include "wait/park.h"

enum { NOT_BEGUN = 0, RUNNING = 1, DONE = 2, GENERATION = 4 };

/* Done, under an engine that keeps an order: each call is an operation, so the fast path must not see DONE. */
#define DONE_IN_ORDER (1u << 31)

static uint32_t running_now(void) {
    return RUNNING | (sbt_fork_generation() * GENERATION & ~DONE_IN_ORDER);
}

static void set_in_order(uint32_t *word, uint32_t value) {
    sbt_engine.order->turn_take();
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
    sbt_engine.order->turn_wake(word);
    sbt_engine.order->turn_pass();
}

static void set(uint32_t *word, uint32_t value) {
    if (SBT_UNLIKELY(sbt_engine.order != NULL)) {
        value = value == DONE ? DONE_IN_ORDER : value;
        if (!sbt_engine.order->unwinds()) {
            set_in_order(word, value);
            return;
        }
    }
    __atomic_store_n(word, value, __ATOMIC_RELEASE); /* pairs with the acquire loads in run */
    sbt_wake(word, INT_MAX);
}

/* A running initialiser, on the stack of the thread that runs it. */
struct running {
    struct _pthread_cleanup_buffer registered;
    uint32_t *word; /* NULL: nothing is left to reset */
};

static void begin_anew(void *argument) {
    struct running *r = argument;
    if (r->word != NULL)
        set(r->word, NOT_BEGUN);
    r->word = NULL;
}

/* At the end of the block, and by the unwinder. If the list's clean-up has run before, this finds nothing to do. */
static void leave(struct running *r) {
    if (r->word != NULL)
        _pthread_cleanup_pop(&r->registered, 1);
}

static void run_initialiser(uint32_t *word, void (*initialise)(void)) {
    struct running r __attribute__((cleanup(leave))) = {.word = word};
    _pthread_cleanup_push(&r.registered, begin_anew, &r);
    initialise();
    r.word = NULL;
    _pthread_cleanup_pop(&r.registered, 0);
    set(word, DONE);
}

/* Each call is an operation of the order, also one that finds the initialiser done. */
static SBT_NOINLINE int run_in_order(uint32_t *word, void (*initialise)(void)) {
    uint32_t running = running_now();
    sbt_engine.order->turn_take();
    while (*word == running)
        sbt_engine.order->turn_wait(word);
    bool is_first = (*word & DONE_IN_ORDER) == 0;
    if (is_first)
        __atomic_store_n(word, running, __ATOMIC_RELAXED);
    sbt_engine.order->turn_pass();
    if (is_first)
        run_initialiser(word, initialise);
    return 0;
}

static SBT_NOINLINE int run(uint32_t *word, void (*initialise)(void)) {
    uint32_t running = running_now();
    for (;;) {
        uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if ((seen & (DONE | DONE_IN_ORDER)) != 0)
            return 0;
        if (seen == running) {
            sbt_park(word, running, NULL);
            continue;
        }
        /* Not begun, or begun in a process that this process was forked from. */
        if (!__atomic_compare_exchange_n(word, &seen, running, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        run_initialiser(word, initialise);
        return 0;
    }
}

SBT_EXPORT int pthread_once(pthread_once_t *once, void (*initialise)(void)) {
    typedef uint32_t SBT_OVERLAY word;
    if (sbt_all_theirs != 0)
        return THEIRS(pthread_once(once, initialise));
    if (SBT_LIKELY((__atomic_load_n((word *)once, __ATOMIC_ACQUIRE) & DONE) != 0))
        return 0;
    sbt_init();
    if (SBT_UNLIKELY(sbt_engine.order != NULL && !sbt_engine.order->unwinds()))
        return run_in_order((word *)once, initialise);
    return sbt_all_theirs != 0 ? sbt_real.pthread_once(once, initialise) : run((word *)once, initialise);
}

SBT_ALIAS(__pthread_once, pthread_once);
