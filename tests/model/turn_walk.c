/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every interleaving of a few threads over the turn (engine/det/turn.h): all must reach one schedule.
 *
 * A thread's script is a list of operations. Between two operations it computes, for as long as it likes: that is, an
 * operation is enabled as soon as its thread has the turn, and any thread may take any time to reach its next one. What
 * a thread does outside of the turn is a step of its own ("computes"), so the walk has every order of arrivals. The
 * schedule is the list of operations, with their threads; each end of the walk must have the same.
 *
 * Two mistakes must be found: an operation without the turn, and a lock that is handed to the thread that comes first.
 */
#include "interleave.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/det/turn.h"

#define MAX_THREADS 4
#define MAX_OPS 40
#define MUTEX 8
#define CONDITION 16

/* The pure turn is large: a state holds what these few threads use of it. */
struct state {
    struct {
        uint32_t holder, n_runnable;
        uint64_t now, next_due, random, runnable;
        uint32_t first[2], last[2]; /* the queues of the two keys */
        struct turn_thread thread[MAX_THREADS];
    } turn;
    uint8_t at[MAX_THREADS];      /* place in the script */
    uint8_t arrived[MAX_THREADS]; /* 1: it has computed, and asks for the turn */
    uint8_t held, n_ops;
    uint8_t schedule[MAX_OPS]; /* thread << 4 | operation */
    uint8_t padding[6];
};

static const char *wrong;
static const char *const *scripts;
static int n_threads;
static enum { NONE, WITHOUT_TURN, FIRST_COMER } mistake;
static bool has_schedule;
static uint8_t schedule[MAX_OPS];
static struct turn turn;

static void load(const struct state *s) {
    memset(turn.runnable, 0, sizeof turn.runnable);
    turn.holder = s->turn.holder;
    turn.n_runnable = s->turn.n_runnable;
    turn.now = s->turn.now;
    turn.next_due = s->turn.next_due;
    turn.random = s->turn.random;
    turn.runnable[0] = s->turn.runnable;
    turn.n_threads = (uint32_t)n_threads;
    memset(turn.queue, 0, sizeof turn.queue);
    for (int k = 0; k < 2; k++) {
        turn.queue[turn_queue_of(k == 0 ? MUTEX : CONDITION)].first = s->turn.first[k];
        turn.queue[turn_queue_of(k == 0 ? MUTEX : CONDITION)].last = s->turn.last[k];
    }
    memcpy(turn.thread, s->turn.thread, sizeof s->turn.thread);
}

static void save(struct state *s) {
    s->turn.holder = turn.holder;
    s->turn.n_runnable = turn.n_runnable;
    s->turn.now = turn.now;
    s->turn.next_due = turn.next_due;
    s->turn.random = turn.random;
    s->turn.runnable = turn.runnable[0];
    for (int k = 0; k < 2; k++) {
        s->turn.first[k] = turn.queue[turn_queue_of(k == 0 ? MUTEX : CONDITION)].first;
        s->turn.last[k] = turn.queue[turn_queue_of(k == 0 ? MUTEX : CONDITION)].last;
    }
    memcpy(s->turn.thread, turn.thread, sizeof s->turn.thread);
}

/* With the turn: lock, unlock, signal, wait (gives the mutex up; the script locks it again), sleep, end. */
static void operate(struct state *s, int t, char op) {
    if (op == 'l' && s->held != 0) {
        turn_block(&turn, MUTEX, TURN_NEVER, 0, false);
        return;
    }
    s->at[t]++;
    s->schedule[s->n_ops++] = (uint8_t)(t << 4 | (op & 15));
    switch (op) {
    case 'l':
        s->held = 1;
        break;
    case 'w':
    case 'u':
        s->held = 0;
        turn_wake(&turn, MUTEX, 1);
        if (op == 'w')
            turn_block(&turn, CONDITION, TURN_NEVER, 0, false);
        break;
    case 's':
        turn_wake(&turn, CONDITION, 1);
        break;
    case 't':
        turn_block(&turn, CONDITION, turn.now + 3 * TURN_NS, 0, false);
        break;
    case 'e':
        turn_end(&turn);
        break;
    default:
        wrong = "an unknown operation in a script";
    }
}

static bool may_operate(const struct state *s, int t) {
    if (s->turn.thread[t].state != TURN_RUNNABLE)
        return false;
    if (mistake == WITHOUT_TURN)
        return true;
    return s->turn.holder == (uint32_t)t || (mistake == FIRST_COMER && s->held == 0);
}

static int step(void *state, int t, int way) {
    struct state *s = state;
    (void)way;
    if (scripts[t][s->at[t]] == '\0')
        return 0;
    if (s->arrived[t] == 0) {
        s->arrived[t] = 1;
        return 1;
    }
    /* The clock outside may pass a deadline at any time. */
    if (s->turn.thread[t].state == TURN_BLOCKED && s->turn.thread[t].deadline != TURN_NEVER &&
        !s->turn.thread[t].overdue) {
        load(s);
        turn_overdue(&turn, (uint32_t)t);
        if (turn.holder == TURN_NO_THREAD)
            turn_choose(&turn);
        save(s);
        return 1;
    }
    if (!may_operate(s, t))
        return 0;
    uint8_t at = s->at[t];
    load(s);
    turn.holder = (uint32_t)t;
    operate(s, t, scripts[t][at]);
    turn_pass(&turn);
    save(s);
    s->arrived[t] = s->at[t] == at; /* a thread that was blocked tries again without computing */
    return 1;
}

static void at_end(const void *state) {
    const struct state *s = state;
    for (int t = 0; t < n_threads; t++)
        if (scripts[t][s->at[t]] != '\0')
            wrong = "a thread waits for ever";
    if (!has_schedule)
        memcpy(schedule, s->schedule, sizeof schedule);
    else if (memcmp(schedule, s->schedule, sizeof schedule) != 0)
        wrong = "another schedule";
    has_schedule = true;
}

static void print(const void *state, int t, int way) {
    const struct state *s = state;
    (void)way;
    printf("#   thread %d, operation %c\n", t, scripts[t][s->at[t]]);
}

struct scenario {
    const char *what;
    const char *script[MAX_THREADS + 1];
};

static bool walk(const struct scenario *which, uint64_t seed, bool show, uint64_t *n_states) {
    struct state first;
    memset(&first, 0, sizeof first);
    memset(&turn, 0, sizeof turn);
    scripts = which->script;
    for (n_threads = 0; scripts[n_threads] != NULL;)
        n_threads++;
    turn_begin(&turn, seed);
    for (int i = 1; i < n_threads; i++)
        turn_create(&turn);
    save(&first);
    wrong = NULL;
    has_schedule = false;
    struct interleave what = {sizeof first, n_threads, step, at_end, &wrong, print};
    return interleave_walk(&what, &first, show, n_states);
}

int main(void) {
    static const struct scenario scenarios[] = {
        {"three threads lock", {"lulue", "lulue", "lulue", NULL}},
        {"four threads lock", {"lue", "lulue", "lue", "lue", NULL}},
        {"a signal", {"lwlue", "lusssse", "lue", NULL}},
        {"sleeps", {"tlue", "luttlue", "lulue", NULL}},
        {"all sleep", {"te", "tte", "te", NULL}},
    };
    static const uint64_t seeds[] = {0, 1, 7};
    size_t n = 0, failed = 0;
    uint64_t n_states;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        for (size_t k = 0; k < sizeof seeds / sizeof seeds[0]; k++) {
            if (i == 2 && seeds[k] != 0)
                continue; /* a signal that no thread waits for yet is lost, and then the script never ends */
            bool right = walk(&scenarios[i], seeds[k], true, &n_states);
            printf("%sok %zu - %s, seed %" PRIu64 ": one schedule, %" PRIu64 " states\n", right ? "" : "not ", ++n,
                   scenarios[i].what, seeds[k], n_states);
            failed += !right;
        }
    static const char *const mistakes[] = {"", "operations without the turn", "a free lock goes to the first comer"};
    for (int m = WITHOUT_TURN; m <= FIRST_COMER; m++) {
        mistake = m;
        bool found = !walk(&scenarios[0], 0, false, &n_states);
        printf("%sok %zu - mistake found: %s\n", found ? "" : "not ", ++n, mistakes[m]);
        failed += !found;
    }
    printf("1..%zu\n", n);
    return failed != 0;
}
