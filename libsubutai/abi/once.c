/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_once, over any engine: a word that says not begun, running, or done, with glibc's value for done.
 *
 * A running initialiser that is cancelled, exits its thread or throws puts the word back, so that another thread tries.
 * One that was running when the process forked does not run in the child: the word holds the generation of the process
 * it began in, and a child begins anew.
 */
#include <limits.h>

#include "abi/abi.h"
#include "wait/futex.h"
#include "wait/park.h"

enum { NOT_BEGUN = 0, RUNNING = 1, DONE = 2, GENERATION = 4 };

static void set(uint32_t *word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE); /* pairs with the acquire loads in run */
    sbt_wake(word, INT_MAX);
}

static void begin_anew(void *word) {
    set(word, NOT_BEGUN);
}

static SBT_NOINLINE int run(uint32_t *word, void (*initialise)(void)) {
    uint32_t running = RUNNING | (sbt_thread_process_generation() * GENERATION);
    for (;;) {
        uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if ((seen & DONE) != 0)
            return 0;
        if (seen == running) {
            sbt_park(word, running, NULL);
            continue;
        }
        /* Not begun, or begun in the process that this one was forked from. */
        if (!__atomic_compare_exchange_n(word, &seen, running, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        pthread_cleanup_push(begin_anew, word);
        initialise();
        pthread_cleanup_pop(0);
        set(word, DONE);
        return 0;
    }
}

SBT_EXPORT int ABI(pthread_once)(pthread_once_t *once, void (*initialise)(void)) {
    typedef uint32_t SBT_OVERLAY word;
    if (sbt_all_theirs != 0)
        return THEIRS(pthread_once(once, initialise));
    if (SBT_LIKELY((__atomic_load_n((word *)once, __ATOMIC_ACQUIRE) & DONE) != 0))
        return 0;
    sbt_init();
    return sbt_all_theirs != 0 ? sbt_real.pthread_once(once, initialise) : run((word *)once, initialise);
}

SBT_ALIAS(ABI(__pthread_once), ABI(pthread_once));
