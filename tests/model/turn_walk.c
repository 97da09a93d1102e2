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
 *
 * In some scenarios a signal handler interrupts a thread while it waits, at any point, and keeps it until all others
 * have ended. Then the schedule is not the same, but no other thread may wait for it, and a signal wakes one thread.
 *
 * usage: turn-walk                   every scenario is right
 *        turn-walk --wrong SCENARIO  turn.c has a mistake, which that scenario finds
 */
#include "interleave.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/det/turn.h"

#define MAX_THREADS 4
#define MAX_OPS 48
#define MUTEX 8
#define CONDITION 2592            /* in the mutex's queue */
#define SHORT (1u << MAX_THREADS) /* of `may_be_interrupted`: the handlers may return at any time */

/* The pure turn is large: a state holds what these few threads use of it. */
struct state {
    struct {
        uint32_t holder, n_runnable, n_back, unused;
        uint64_t now, next_due, random, runnable;
        uint32_t first[2], last[2]; /* the queues of the two keys */
        struct turn_thread thread[MAX_THREADS];
    } turn;
    uint8_t at[MAX_THREADS];      /* place in the script */
    uint8_t arrived[MAX_THREADS]; /* 1: it has computed, and asks for the turn */
    uint8_t held, n_ops;
    uint8_t schedule[MAX_OPS];    /* thread << 4 | operation */
    uint8_t waits[MAX_THREADS];   /* 1: it has blocked, and made no operation since */
    uint8_t is_away[MAX_THREADS]; /* 1: a handler runs in its place */
    uint8_t n_interrupts;
    uint8_t padding[5];
};
_Static_assert(sizeof(struct state) % 8 == 0, "no hidden padding");

static const char *wrong;
static const char *const *scripts;
static int n_threads;
static unsigned may_be_interrupted; /* bit per thread; 0: the scenario has one schedule */
static uint8_t interrupted_from;    /* when all of these threads have come to that place in their scripts */
static enum { NONE, WITHOUT_TURN, FIRST_COMER } mistake;
static bool has_schedule;
static uint8_t schedule[MAX_OPS];
static struct turn turn;

static void load(const struct state *s) {
    memset(turn.runnable, 0, sizeof turn.runnable);
    turn.holder = s->turn.holder;
    turn.n_runnable = s->turn.n_runnable;
    turn.n_back = s->turn.n_back;
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
    s->turn.n_back = turn.n_back;
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

/* With the turn: lock, unlock, signal, wait (gives the mutex up; the script locks it again), t and T sleep, end. */
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
            turn_block(&turn, CONDITION, TURN_NEVER, TURN_EXACT, false);
        break;
    case 's':
        turn_wake(&turn, CONDITION, 1);
        break;
    case 't':
    case 'T':
        turn_block(&turn, CONDITION, turn.now + (op == 't' ? 3 : 12) * TURN_NS, 0, false);
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

static bool have_others_ended(const struct state *s, int t) {
    for (int i = 0; i < n_threads; i++)
        if (i != t && s->is_away[i] == 0 && scripts[i][s->at[i]] != '\0')
            return false;
    return true;
}

/* What must be so after each step. */
static void look(const struct state *s) {
    uint32_t n = 0, n_back = 0;
    for (int i = 0; i < n_threads; i++) {
        const struct turn_thread *thread = &s->turn.thread[i];
        bool is_runnable = thread->state == TURN_RUNNABLE;
        n += is_runnable;
        n_back += thread->is_back;
        if (thread->is_back && (!is_runnable || s->turn.holder == (uint32_t)i))
            wrong = "a thread is back that does not wait for the turn";
        if (is_runnable != ((s->turn.runnable >> i & 1) != 0))
            wrong = "a bit is wrong";
        if (s->is_away[i] != 0 && is_runnable)
            wrong = "an absent thread is in the round";
        if (thread->is_absent && thread->state != TURN_BLOCKED)
            wrong = "absence has outlived the wait";
        if (thread->state == TURN_BLOCKED && thread->deadline <= s->turn.now)
            wrong = "a deadline has come, and its thread waits";
        if (s->is_away[i] != (thread->state == TURN_OUTSIDE || thread->is_absent))
            wrong = "a thread is absent and is not, or the other way round";
    }
    if (n != s->turn.n_runnable)
        wrong = "the runnable threads are miscounted";
    if (n_back != s->turn.n_back)
        wrong = "the threads that are back are miscounted";
    if ((s->turn.holder == TURN_NO_THREAD) != (n == 0) ||
        (n != 0 && s->turn.thread[s->turn.holder].state != TURN_RUNNABLE))
        wrong = "a thread that is not runnable has the turn, or none has it";
}

/* As det_join_round and is_present (engine/det). */
static void interrupt(struct state *s, int t) {
    load(s);
    uint32_t waiting = turn_waiting(&turn, CONDITION, TURN_EXACT);
    turn_absent(&turn, (uint32_t)t);
    if (turn.holder == TURN_NO_THREAD || turn.thread[turn.holder].state != TURN_RUNNABLE)
        turn_choose(&turn);
    if (turn_waiting(&turn, CONDITION, TURN_EXACT) != waiting)
        wrong = "woken without a signal";
    save(s);
    s->is_away[t] = 1;
    s->n_interrupts++;
}

static void come_back(struct state *s, int t) {
    load(s);
    if (turn_present(&turn, (uint32_t)t) && turn.holder == TURN_NO_THREAD)
        turn_choose(&turn);
    save(s);
    s->is_away[t] = 0;
}

static bool may_interrupt(const struct state *s, int t) {
    for (int i = 0; i < n_threads; i++)
        if ((may_be_interrupted >> i & 1) != 0 && s->at[i] < interrupted_from)
            return false;
    return (may_be_interrupted >> t & 1) != 0 && s->waits[t] != 0 && s->n_interrupts < 2;
}

/* Only an overdue thread's deadline makes it jump. */
static void look_at_time(uint64_t before) {
    bool jumps = turn.now > before + TURN_NS;
    for (int i = 0; i < n_threads; i++)
        jumps = jumps && !(turn.thread[i].overdue && turn.thread[i].deadline == turn.now);
    if (jumps)
        wrong = "time has jumped, and the clock has not";
}

/* With the turn. */
static void make_operation(struct state *s, int t) {
    uint8_t at = s->at[t];
    load(s);
    turn.holder = (uint32_t)t;
    uint32_t waiting = turn_waiting(&turn, CONDITION, TURN_EXACT);
    operate(s, t, scripts[t][at]);
    if (turn_waiting(&turn, CONDITION, TURN_EXACT) + (scripts[t][at] == 's') < waiting)
        wrong = "a signal wakes two";
    s->waits[t] = turn.thread[t].state == TURN_BLOCKED;
    uint64_t before = turn.now;
    turn_pass(&turn);
    look_at_time(before);
    save(s);
    s->arrived[t] = s->at[t] == at; /* a thread that was blocked tries again without computing */
}

static int step(void *state, int t, int way) {
    struct state *s = state;
    if (scripts[t][s->at[t]] == '\0')
        return 0;
    if (s->is_away[t] != 0) {
        if ((may_be_interrupted & SHORT) == 0 && !have_others_ended(s, t))
            return 0;
        come_back(s, t);
        look(s);
        return 1;
    }
    if (way == 0 && may_interrupt(s, t)) {
        interrupt(s, t);
        look(s);
        return 2;
    }
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
        look(s);
        return 1;
    }
    if (!may_operate(s, t))
        return 0;
    make_operation(s, t);
    if (mistake == NONE)
        look(s);
    return 1;
}

static void at_end(const void *state) {
    const struct state *s = state;
    for (int t = 0; t < n_threads; t++)
        if (scripts[t][s->at[t]] != '\0')
            wrong = "a thread waits for ever";
    if (may_be_interrupted != 0)
        return;
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
    bool without_seed; /* a signal that no thread waits for yet is lost, and then the script never ends */
    unsigned may_be_interrupted;
    uint8_t interrupted_from;
};

static const struct scenario scenarios[] = {
    {"three threads lock", {"lulue", "lulue", "lulue"}, false, 0, 0},
    {"four threads lock", {"lue", "lulue", "lue", "lue"}, false, 0, 0},
    {"a signal", {"lwlue", "lusssse", "lue"}, true, 0, 0},
    {"sleeps", {"tlue", "luttlue", "lulue"}, false, 0, 0},
    {"all sleep", {"te", "tte", "te"}, false, 0, 0},
    {"a sleep between two waits", {"lwlue", "Te", "lwlue", "lululululululululululululusse"}, true, 0, 0},
    {"a sleep behind a wait", {"lwlue", "te", "lululululwlue", "lululululululululusse"}, true, 0, 0},
    {"a handler, threads lock", {"lue", "lue", "lue"}, false, 6, 0},
    {"a handler, four threads lock", {"lue", "lue", "lue", "lulue"}, false, 14, 0},
    {"a handler, two signals", {"lwlue", "lwlue", "lulululusse"}, true, 3, 2},
    {"a handler, sleeps", {"tlue", "tlue", "lulue"}, false, 3, 0},
    {"a short handler, threads lock", {"lue", "lue", "lulue"}, false, 7 | SHORT, 0},
    {"a short handler, two signals", {"lwlue", "lwlue", "lulululusse"}, true, 3 | SHORT, 2},
};

static bool walk(const struct scenario *which, uint64_t seed, bool show, uint64_t *n_states) {
    struct state first;
    memset(&first, 0, sizeof first);
    memset(&turn, 0, sizeof turn);
    scripts = which->script;
    may_be_interrupted = which->may_be_interrupted;
    interrupted_from = which->interrupted_from;
    for (n_threads = 0; scripts[n_threads] != NULL;)
        n_threads++;
    turn_begin(&turn, seed);
    for (int i = 1; i < n_threads; i++)
        turn_create(&turn);
    save(&first);
    wrong = NULL;
    has_schedule = false;
    struct interleave what = {
        .bytes = sizeof first, .n_threads = n_threads, .step = step, .at_end = at_end, .wrong = &wrong, .print = print};
    return interleave_walk(&what, &first, show, n_states);
}

static int is_wrong(const char *what) {
    uint64_t n_states;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].what, what) == 0) {
            bool found = !walk(&scenarios[i], 0, false, &n_states);
            printf("1..1\n%sok 1 - found by %s: %s\n", found ? "" : "not ", what, found ? wrong : "nothing");
            return !found;
        }
    printf("Bail out! no scenario %s\n", what);
    return 1;
}

int main(int argc, char **argv) {
    static const uint64_t seeds[] = {0, 1, 7};
    size_t n = 0, failed = 0;
    uint64_t n_states;
    if (argc == 3 && strcmp(argv[1], "--wrong") == 0)
        return is_wrong(argv[2]);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        for (size_t k = 0; k < (scenarios[i].without_seed ? 1 : sizeof seeds / sizeof seeds[0]); k++) {
            bool right = walk(&scenarios[i], seeds[k], true, &n_states);
            printf("%sok %zu - %s, seed %" PRIu64 ": %s, %" PRIu64 " states\n", right ? "" : "not ", ++n,
                   scenarios[i].what, seeds[k], scenarios[i].may_be_interrupted == 0 ? "one schedule" : "all end",
                   n_states);
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
