/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One release is measured at a time, from before its first wake-up to the last of its threads that is awake. The record
 * is here and not in the object, which may be gone.
 *  1. The waker claims the record, notes the time and the word, and wakes. Then it notes how many.
 *  2. Each thread that comes out of its sleep and finds its word in the record counts itself, and notes the time if it
 *     is the latest.
 *  3. The next waker that may measure takes the record, if as many threads have come as were woken. If they have not
 *     after a while, it drops the record: a thread was woken for another reason, or is stopped.
 * A thread that comes out for another reason makes one sample wrong; medians do not mind.
 */
#include "wait/wake_gap.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "core/log.h"
#include "decimal.h"
#include "os/arch.h"
#include "os/clock.h"
#include "os/futex.h"
#include "wait/gap_tuner.h"

#define SPREAD_MOST_NS 10000000 /* no release is spread over more than 10 ms */
#define SPIN_NS 3000            /* shorter gaps are spun; longer ones give the core away */
#define DROP_NS 100000000       /* a measurement that is not over after 0.1 s is dropped */
#define N_MEMORIES 64

bool sbt_wake_gap_on;
static uint64_t fixed_ns; /* SBT_WAKE_GAP_AUTO */

/* How many threads the last release of a word woke; words share a memory. Atomic, relaxed: a guess. */
static uint16_t memory[N_MEMORIES];

/* Of the tuner, and of the record while no release is measured. A waker that finds it taken does not wait. */
static uint32_t busy;
static struct sbt_gap_tuner tuner;

static struct {
    const uint32_t *word; /* NULL: no release is measured; atomic: release when written, after the rest */
    uint64_t start_ns, last_ns;
    uint32_t n_woken, n_come; /* n_woken 0: the waker is not through */
    uint32_t class, gap_ns;
} record;

static uint16_t *memory_of(const uint32_t *word) {
    return &memory[((uint64_t)(uintptr_t)word * 0x9E3779B97F4A7C15u) >> 58];
}
_Static_assert(N_MEMORIES == 1 << (64 - 58), "as many bits of the hash");

void sbt_wake_gap_start(uint64_t gap_ns) {
    fixed_ns = gap_ns;
    sbt_wake_gap_on = gap_ns != 0;
}

void sbt_wake_gap_fork_child(void) {
    busy = 0;
    record.word = NULL;
}

void sbt_wake_gap_woken(const uint32_t *word) {
    if (fixed_ns != SBT_WAKE_GAP_AUTO || __atomic_load_n(&record.word, __ATOMIC_ACQUIRE) != word)
        return;
    const uint64_t now = sbt_now_ns();
    uint64_t last = __atomic_load_n(&record.last_ns, __ATOMIC_RELAXED);
    while (last < now &&
           !__atomic_compare_exchange_n(&record.last_ns, &last, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    __atomic_fetch_add(&record.n_come, 1, __ATOMIC_RELEASE); /* pairs with the load in collect */
}

static void say(const struct sbt_gap_class *c, uint32_t class) {
    char from[DECIMAL_SIZE], to[DECIMAL_SIZE], gap[DECIMAL_SIZE], with[DECIMAL_SIZE], without[DECIMAL_SIZE];
    sbt_log(2, "wake gap for ", decimal_of(from, 1u << class), " to ", decimal_of(to, (2u << class) - 1),
            " sleepers: ", decimal_of(gap, c->best_ns), " ns; a release takes ", decimal_of(with, c->median_ns[1]),
            " ns, without a gap ", decimal_of(without, c->median_ns[0]), " ns", NULL);
}

/* Take the record of the release before, if there is one. False: that is still measured. */
static bool collect(uint64_t now) {
    if (__atomic_load_n(&record.word, __ATOMIC_RELAXED) == NULL)
        return true;
    const uint32_t woken = __atomic_load_n(&record.n_woken, __ATOMIC_ACQUIRE);
    const bool over = woken != 0 && __atomic_load_n(&record.n_come, __ATOMIC_ACQUIRE) >= woken;
    if (!over && now - record.start_ns < DROP_NS)
        return false;
    __atomic_store_n(&record.word, NULL, __ATOMIC_RELAXED);
    if (over && woken > 1 && sbt_gap_learn(&tuner, record.class, record.gap_ns, record.last_ns - record.start_ns))
        say(&tuner.of[record.class], record.class);
    return true;
}

/* The gap for a release of about so many. *measured: the record is the caller's. */
static uint32_t choose(const uint32_t *word, uint32_t n, bool *measured) {
    uint32_t free = 0, gap_ns, class = sbt_gap_class_of(n);
    *measured = false;
    if (fixed_ns != SBT_WAKE_GAP_AUTO)
        return (uint32_t)fixed_ns;
    if (!__atomic_compare_exchange_n(&busy, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return __atomic_load_n(&tuner.of[class].best_ns, __ATOMIC_RELAXED);
    const uint64_t now = sbt_now_ns();
    if (word == NULL || !collect(now)) {
        gap_ns = tuner.of[class].best_ns;
    } else {
        gap_ns = sbt_gap_next(&tuner, class, measured);
        if (*measured) {
            record.start_ns = record.last_ns = now;
            record.n_woken = record.n_come = 0;
            record.class = class;
            record.gap_ns = gap_ns;
            __atomic_store_n(&record.word, word, __ATOMIC_RELEASE); /* pairs with the load in sbt_wake_gap_woken */
        }
    }
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return gap_ns;
}

uint32_t sbt_wake_gap_between(uint32_t n) {
    bool measured;
    return n > 1 ? choose(NULL, n, &measured) : 0;
}

void sbt_wake_gap_pause(uint32_t gap_ns) {
    const uint64_t end = sbt_now_ns() + gap_ns;
    while (sbt_now_ns() < end)
        if (gap_ns > SPIN_NS)
            sbt_yield();
        else
            sbt_cpu_relax();
}

static long wake(uint32_t *word, int n, uint32_t bits) {
    return sbt_syscall6(SYS_futex, (long)word, FUTEX_WAKE_BITSET_PRIVATE, n, 0, 0, (long)bits);
}

/*
 * One at a time, as many as are expected; then all that are left, or none if a call has found none. *about: how many to
 * expect, and to expect the next time. Threads that were woken early may sleep again, for the next release, and be
 * woken with those that are left. So these count only if they are more than were expected.
 */
static long wake_spaced(uint32_t *word, int n, uint32_t bits, uint32_t gap_ns, uint32_t *about) {
    long woken = 0, r = 1;
    for (uint64_t spent = 0; woken + 1 < *about && r > 0 && spent < SPREAD_MOST_NS; spent += gap_ns) {
        r = wake(word, 1, bits);
        woken += r > 0;
        if (r > 0)
            sbt_wake_gap_pause(gap_ns);
    }
    if (r <= 0) {
        *about = (uint32_t)woken;
        return woken > 0 ? woken : r;
    }
    r = wake(word, n - (int)woken, bits);
    if (r > (long)*about)
        *about = (uint32_t)r;
    return r > 0 ? woken + r : woken;
}

long sbt_wake_gap_wake(uint32_t *word, int n, uint32_t bits) {
    uint16_t *last = memory_of(word);
    uint32_t about = __atomic_load_n(last, __ATOMIC_RELAXED);
    bool measured = false;
    long woken;
    if (n < 2)
        return wake(word, n, bits);
    about = about < (uint32_t)n ? about : (uint32_t)n;
    const uint32_t gap_ns = about > 1 ? choose(word, about, &measured) : 0;
    if (gap_ns != 0) {
        int type;
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
        sbt_handlers_hold();
        woken = wake_spaced(word, n, bits, gap_ns, &about);
        sbt_handlers_release();
        pthread_setcanceltype(type, NULL);
    } else {
        woken = wake(word, n, bits);
        about = woken > 0 ? (uint32_t)woken : 0;
    }
    if (measured)
        __atomic_store_n(&record.n_woken, woken > 0 ? (uint32_t)woken : 1, __ATOMIC_RELEASE); /* pairs with collect */
    if (woken >= 0)
        __atomic_store_n(last, about < UINT16_MAX ? (uint16_t)about : UINT16_MAX, __ATOMIC_RELAXED);
    return woken;
}
