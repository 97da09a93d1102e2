/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every interleaving of a few threads over one mutex and one condition of the engine `direct`.
 *
 * Each `case` in mutex_lock_steps.c, mutex_unlock_steps.c and mutex_cond_steps.c is one atomic step of
 * engine/direct/mutex.c, cond.c or wait/parking_lot.c, named after the function it is in. Steps that no other thread
 * can tell apart are one: a load with the compare-and-swap that follows it in take(); list operations under a bucket
 * lock with the atomic before them; the release of a bucket with the last thing done under it. Time is a choice: a
 * deadline passes, a cancellation strikes, a hand-over is due, a notified waiter is late or overdue, a waiter looks
 * again, whenever that could be. Memory is sequentially consistent: orders are argued in the sources, not walked here.
 * A futex sleeper stays asleep until the futex call that wakes it, which is a step of its own, or a signal. A signal
 * handler interrupts one thread wherever handlers are not deferred, and waits for the other threads to end.
 *
 * Checked: two threads never hold the mutex; the word's table in direct.h; no thread sleeps for ever, that is, every
 * walk ends with all threads at the end of their scripts. Each mutant is a mistake put back in; a walk that does not
 * find it is a walk that finds nothing, so it fails the test.
 */
#include "interleave.h"
#include "mutex_model.h"
#include "part.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const step_name[] = {STEPS(AS_TEXT)};

static int program_step(struct state *s, int t, int way) {
    uint8_t next = s->t[t].step;
    return next < UNLOCK ? lock_step(s, t, way) : next < COND_WAIT ? unlock_step(s, t, way) : cond_step(s, t, way);
}

/* A thread that a handler may interrupt here has one way more, the first. */
static int step(void *state, int t, int way) {
    struct state *s = state, without;
    if (t != scenario->held_up - 1 || !may_interrupt(&s->t[t]))
        return program_step(s, t, way);
    if (way != 0)
        return program_step(s, t, way - 1) + 1;
    without = *s;
    interrupt(&s->t[t]);
    return program_step(&without, t, 0) + 1;
}

static void at_end(const void *state) {
    const struct state *s = state;
    for (int i = 0; i < n_threads; i++)
        if (s->t[i].step != END) {
            wrong = "a thread waits for ever";
            return;
        }
    if (s->holder != NO_THREAD || (s->word & LOCKED) != 0)
        wrong = "the mutex is still held";
    if (!forked() && s->word != 0)
        wrong = "bits are left behind";
}

static void print(const void *state, int t, int way) {
    const struct state *s = state;
    printf("#   thread %d %s%s (word %x)\n", t, step_name[s->t[t].step], way != 0 ? ", other way" : "", s->word);
}

/* True if nothing is wrong. */
static bool walk(const struct scenario *which, enum mutant with, bool show, uint64_t *n_states) {
    scenario = which;
    mutant = with;
    wrong = NULL;
    for (n_threads = 0; n_threads < MAX_THREADS && which->script[n_threads] != NULL;)
        n_threads++;
    struct state first = {.word = which->word,
                          .holder = (which->word & LOCKED) != 0 ? 0 : NO_THREAD,
                          .cond_word = which->cond_word,
                          .bucket = {NO_THREAD, NO_THREAD}};
    struct interleave what = {sizeof first, n_threads, step, at_end, &wrong, 0, print};
    return interleave_walk(&what, &first, show, n_states);
}

static const struct scenario scenarios[] = {
    {"three threads lock", {"lu", "lu", "lu"}, 0, 0, 0, 1, 0},
    {"two lock twice, one once", {"lulu", "lulu", "lu"}, 0, 0, 0, 0, 0},
    {"a deadline", {"lu", "tu", "lu"}, 0, 0, 0, 1, 0},
    {"two deadlines", {"lu", "tu", "tu"}, 0, 0, 0, 0, 0},
    {"one signal, under the mutex", {"lwu", "lpsu", "lu"}, 0, 0, 0, 0, 0},
    {"one signal, after it", {"lwu", "lpus", "lu"}, 0, 1, 0, 0, 0},
    {"broadcast to two", {"lwu", "lwu", "lppbu"}, 0, 0, 0, 0, 0},
    {"broadcast to two, one bucket, after the mutex", {"lwu", "lwu", "lppub"}, 0, 1, 0, 0, 0},
    {"a signal for a waiter with a deadline and another", {"lTsu", "lwu", "lppsu"}, 0, 0, 0, 0, 0},
    {"a signal for a cancelled waiter and another", {"lcsu", "lwu", "lppsu"}, 0, 0, 0, 0, 0},
    {"the same, one bucket, after the mutex", {"lcsu", "lwu", "lppus"}, 0, 1, 0, 0, 0},
    {"a child: stale QUEUED, WOKEN", {"lu", "lu", "lu"}, QUEUED | WOKEN, 0, 0, 0, 0},
    {"a child: stale QUEUED", {"lu", "lu", "lu"}, QUEUED, 0, 0, 0, 0},
    {"a child: everything stale", {"lu", "lu", "lu"}, QUEUED | WOKEN | ACTIVE | SPUN, 0, 0, 0, 0},
    {"a child: it holds the mutex", {"ulu", "lu", "lu"}, LOCKED | QUEUED | WOKEN, 0, 0, 0, 0},
    {"a child: stale ACTIVE, a condition", {"lwu", "lpsu", NULL}, ACTIVE, 0, 1, 0, 0},
    {"a child: stale ACTIVE, held, a condition", {"ulwu", "lpsu", "lu"}, LOCKED | ACTIVE | QUEUED, 0, 1, 0, 0},
    {"a child: stale QUEUED, WOKEN, a condition", {"lwu", "lpsu", "lu"}, QUEUED | WOKEN, 1, 1, 0, 0},
    {"one is held up, two lock", {"lu", "lu", "lu"}, 0, 0, 0, 0, 1},
    {"one is held up, one signals", {"lu", "lwu", "lpsu"}, 0, 0, 0, 0, 1},
    {"one is held up, one signals after it", {"lu", "lwu", "lpus"}, 0, 1, 0, 0, 1},
    {"one that waits for a signal is held up", {"lwu", "lwu", "lppbu"}, 0, 0, 0, 0, 1},
};

/* Minutes and gigabytes; walked when asked for. */
static const struct scenario long_scenarios[] = {
    {"four threads lock", {"lu", "lu", "lu", "lu"}, 0, 0, 0, 0, 0},
    {"four threads, deadlines", {"lu", "tu", "tu", "lu"}, 0, 0, 0, 0, 0},
    {"broadcast to two, a bystander", {"lwu", "lwu", "lppub", "lu"}, 0, 1, 0, 0, 0},
};

/* What must be found, and by which scenario. */
static const struct {
    enum mutant mutant;
    const char *what;
    int scenario;
} mistakes[] = {
    {DESIGNATED_NO_MORE, "a waiter is the designated waker no more before it clears WOKEN", 1},
    {ENQUEUE_KEEPS_ACTIVE, "a thread that queues leaves ACTIVE behind", 1},
    {ACTIVE_OUTLIVES_MOVE, "after_move keeps a forked child's stale ACTIVE", 15},
    {STALE_WOKEN_KEPT, "a thread that queues believes a forked child's stale WOKEN", 11},
    {MOVE_FORGETS_FREE, "after_move wakes no thread though the mutex is free", 5},
    {CANCEL_KEEPS_SIGNAL, "a cancelled waiter keeps the signal", 9},
    {LEAVING_ENDS_ANOTHERS, "a waiter that leaves clears the WOKEN that stands for another", 0},
    {TIME_UP_UNASKED, "a waiter leaves when its time is up though unlocks relied on it", 2},
    {MOVED_TIMES_OUT, "a waiter that was moved leaves the mutex's queue when its time is up", 8},
    {HELD_UP_UNSAID, "unlocks go on relying on a waiter that a handler has interrupted", 18},
    {HELD_UP_KEEPS_ACTIVE, "ACTIVE outlives the start of the handler", 18},
    {BACK_RELIES_ON_IT, "unlocks go on relying on a waiter after another took its hand-over", 19},
    {WOKEN_ENDS_RUN, "a broadcast ends with the sleeper that it has woken", 6},
    {GRANTED_SLEEPS_ON, "a sleeper that is granted its wake-up is not woken", 4},
};

int main(int argc, char **argv) {
    const size_t n_short = sizeof scenarios / sizeof scenarios[0], n_mistakes = sizeof mistakes / sizeof mistakes[0];
    const size_t n_long = sizeof long_scenarios / sizeof long_scenarios[0];
    bool all = argc == 2 && strcmp(argv[1], "--long") == 0;
    struct part part = {0, 1};
    size_t n = 0, failed = 0;
    uint64_t n_states;
    if (!all && !part_parse(argc, argv, &part)) {
        fprintf(stderr, "usage: %s [--long | --part K/N]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < n_short + (all ? n_long : 0); i++) {
        const struct scenario *which = i < n_short ? &scenarios[i] : &long_scenarios[i - n_short];
        if (!part_has(&part, i))
            continue;
        bool right = walk(which, NONE, true, &n_states);
        printf("%sok %zu - %s: %" PRIu64 " states\n", right ? "" : "not ", ++n, which->name, n_states);
        fflush(stdout);
        failed += !right;
    }
    for (size_t i = 0; i < n_mistakes; i++) {
        if (!part_has(&part, i))
            continue;
        bool found = !walk(&scenarios[mistakes[i].scenario], mistakes[i].mutant, false, &n_states);
        printf("%sok %zu - mistake found within %" PRIu64 " states: %s\n", found ? "" : "not ", ++n, n_states,
               mistakes[i].what);
        fflush(stdout);
        failed += !found;
    }
    printf("1..%zu\n", n);
    return failed != 0;
}
