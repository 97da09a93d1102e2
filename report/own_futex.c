/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Futexes that threads use as locks: Rust's Mutex, a binary semaphore of C++20, glibc's low-level lock. The trace has
 * their waits and wake-ups only, so a word is judged by its history. It is a lock's if
 *
 * 1. the threads that wait there wake others there: a thread that waited for a lock has it next, and gives it back. One
 *    that was woken may find the lock taken again, so that it waits several times before it wakes. A worker that waits
 *    for work wakes no other worker, and neither do those that wait for a latch.
 * 2. such threads have ended a part of the waits: a mailbox's reader wakes too, and finds no thread.
 * 3. a thread that waits again, and all threads, wait for the word to change from one and the same value ("taken, and
 *    threads wait"). A condition variable, an event count or a barrier waits for a number that each wake-up changes; of
 *    two threads that pass a turn to each other each has its own value.
 * 4. a wake-up is for one thread, and not for all.
 * 5. hardly a wait was ended by a thread that never waits there: all that use a lock wait for it now and then. Where
 * jobs make jobs workers wake each other, but the first job of each chain comes from a thread that is no worker.
 *
 * A read-write lock, as Rust's, has two words side by side. Writers wait at the second, where each wake-up changes the
 * number (1, 2 and 4 hold), readers at the first, for one of few values that come again, and writers wake these.
 *
 * A lock that parks each thread at a word of the thread's own (parking_lot, abseil, nsync) is not told from a thread
 * that waits for work: `unclear`. Nor is one of which each wake-up changes the number, as libstdc++'s atomic_flag.
 */
#include <stdlib.h>

#include "walk.h"

enum {
    LEAST_WOKEN = 4,
    LEAST_AGAIN = 2,
    GIVEN_SHARE = 4,
    ENDED_SHARE = 8,
    SAME_SHARE = 10,
    OTHERS_SHARE = 6,
    VALUES = 4
};

/* Of one thread at one word. */
struct visits {
    uint32_t object, thread;
    uint64_t woken, wakes, ended; /* ended: waits of others, by its wakes */
    uint64_t for_several;         /* wakes that ended more than one */
    uint64_t again, same, known;  /* waits after one from which it was woken; for its value, for one of the last ones */
    uint32_t values[VALUES];      /* of the last waits, a ring; value: of the last one */
    uint32_t value;
};

struct rep_table rep_futexes_table(void) {
    return (struct rep_table){.key_bytes = 8, .entry_bytes = sizeof(struct visits), .most = REP_MOST_PAIRS};
}

static void wait_again(struct visits *v, uint32_t value) {
    bool known = false;
    for (uint64_t i = 0; i < VALUES && i < v->woken; i++)
        known |= v->values[i] == value;
    v->again++;
    v->same += v->value == value;
    v->known += known;
}

void rep_futexes_count(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, uint64_t n) {
    const bool waits = e->op == SBT_TRACE_FUTEX_WAIT;
    if (n == 0 || e->object >= w->report->info.n_objects || e->result != 0 || (!waits && e->op != SBT_TRACE_FUTEX_WAKE))
        return;
    const uint32_t key[2] = {e->object, thread};
    struct visits *v = rep_table_get(&w->futexes, key);
    if (v == NULL)
        return;
    if (!waits) {
        v->wakes += n;
        v->ended += e->size;
        v->for_several += e->size > 1;
        return;
    }
    if (v->woken > 0)
        wait_again(v, e->size);
    v->values[v->woken % VALUES] = v->value = e->size;
    v->woken += n;
}

/* Of one word: by all threads, and by those that both wait and wake there. */
struct word {
    uint32_t n_waiting, n_both;
    uint64_t woken, given, ended, ended_by_others, for_several, wakes, again, same, known;
    uint64_t most_woken, at_value; /* of the thread that waited most; of all that waited last for its value */
    uint32_t value;
    bool gives_back, has_state, has_few_values;
};

static void add_up(struct word *o, const struct visits *v) {
    o->n_waiting += v->woken > 0;
    o->woken += v->woken;
    o->wakes += v->wakes;
    o->for_several += v->for_several;
    o->again += v->again;
    o->same += v->same;
    o->known += v->known;
    o->ended_by_others += v->woken == 0 ? v->ended : 0;
    if (v->woken > o->most_woken) {
        o->most_woken = v->woken;
        o->value = v->value;
    }
    if (v->woken == 0 || v->wakes == 0)
        return;
    o->n_both++;
    o->given += v->woken < v->wakes ? v->woken : v->wakes;
    o->ended += v->ended;
}

static void judge(struct word *o) {
    o->gives_back = o->n_both > 1 && o->woken >= LEAST_WOKEN && GIVEN_SHARE * o->given >= o->woken &&
                    ENDED_SHARE * o->ended >= o->woken && SAME_SHARE * o->for_several <= o->wakes;
    o->has_state = o->again >= LEAST_AGAIN && SAME_SHARE * (o->again - o->same) <= o->again &&
                   SAME_SHARE * (o->woken - o->at_value) <= o->woken && OTHERS_SHARE * o->ended_by_others <= o->woken;
    o->has_few_values = o->again >= LEAST_AGAIN && 2 * o->known >= o->again;
}

static const struct visits *visits_of(const struct rep_walk *w) {
    return (const struct visits *)(const void *)w->futexes.entries;
}

static void judge_all(struct rep_walk *w, struct word *words) {
    const struct visits *v = visits_of(w);
    for (size_t i = 0; i < w->futexes.n; i++)
        add_up(&words[v[i].object], &v[i]);
    for (size_t i = 0; i < w->futexes.n; i++)
        words[v[i].object].at_value += v[i].value == words[v[i].object].value ? v[i].woken : 0;
    for (uint32_t i = 0; i < w->report->info.n_objects; i++)
        judge(&words[i]);
}

struct placed {
    uint64_t address;
    uint32_t object;
};

static int by_address(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    return x->address != y->address ? (x->address < y->address ? -1 : 1) : x->object < y->object ? -1 : 1;
}

/* Neither is a lock by itself: readers wait at the one, and writers at the other. */
static void pair(struct rep_report *r, const struct word *words, uint32_t readers, uint32_t writers) {
    if (r->objects[readers].gives_back || r->objects[writers].gives_back || !words[writers].gives_back ||
        !words[readers].has_few_values || words[readers].woken < LEAST_WOKEN)
        return;
    r->objects[writers].gives_back = true;
    r->objects[writers].unclear = r->objects[readers].unclear = false;
    r->objects[readers].beside_lock = true;
}

static bool pair_all(struct rep_walk *w, const struct word *words) {
    struct placed *placed = malloc((w->futexes.n + 1) * sizeof *placed);
    const struct visits *v = visits_of(w);
    size_t n = 0;
    if (placed == NULL)
        return rep_no_memory(w->error);
    for (size_t i = 0; i < w->futexes.n; i++)
        if (v[i].woken > 0)
            placed[n++] = (struct placed){sbt_trace_object_address(w->trace, v[i].object), v[i].object};
    qsort(placed, n, sizeof *placed, by_address);
    for (size_t i = 1; i < n; i++)
        if (placed[i].address == placed[i - 1].address + sizeof(uint32_t)) {
            pair(w->report, words, placed[i - 1].object, placed[i].object);
            pair(w->report, words, placed[i].object, placed[i - 1].object);
        }
    free(placed);
    return true;
}

bool rep_futexes_settle(struct rep_walk *w) {
    struct rep_report *r = w->report;
    struct word *words = calloc((size_t)r->info.n_objects + 1, sizeof *words);
    if (words == NULL)
        return rep_no_memory(w->error);
    judge_all(w, words);
    for (uint32_t i = 0; i < r->info.n_objects; i++) {
        r->objects[i].gives_back |= words[i].gives_back && words[i].has_state;
        r->objects[i].unclear = !r->objects[i].gives_back && (words[i].n_waiting == 1 || words[i].gives_back);
    }
    const bool whole = pair_all(w, words);
    free(words);
    rep_table_free(&w->futexes);
    return whole;
}
