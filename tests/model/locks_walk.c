/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * locks-walk [--wrong SCENARIO]: every interleaving of two and three threads that use a lock of bench/locks. It is the
 * locks' own code that is walked.
 *
 * Checked: two sections never overlap; each section that was asked for is run once, before its call returns; no thread
 * waits for ever; where the paper promises it, sections run in the order of arrival, that is, of the first exchange or
 * addition. For MCS-TP, where waiters are passed over when their time is stale and leave when their patience ends: all
 * that too, and a thread that left has had no section. With --wrong, for a source with a mistake in it, the scenario
 * must fail.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "code_sched.h"
#include "locks/locks.h"

static const struct lock_kind *kind;
static int n_sections; /* of each thread */
static bool impatient; /* thread 0 gives up when its patience ends */

/* In the arena. */
static struct world {
    uint32_t inside, n_run;
    uint32_t run_for[CODE_MAX_THREADS], asked[CODE_MAX_THREADS];
} * world;
static void *lock, *node[CODE_MAX_THREADS];

static void check_order(int served) {
    for (int i = 0; i < CODE_MAX_THREADS; i++)
        if (i != served && code_arrival(i) != 0 && code_arrival(i) < code_arrival(served))
            code_wrong("a section ran before one that had arrived earlier");
    code_served(served);
}

/* The context is the place of the thread that asked: another thread may run the section. */
static void section(void *context) {
    uint32_t *run_for = context;
    if (kind->fifo)
        check_order((int)(run_for - world->run_for));
    if (world->inside++ != 0)
        code_wrong("two sections overlap");
    code_touch(&world->n_run, CODE_WRITE);
    world->n_run++;
    ++*run_for;
    world->inside--;
}

static void ask(int t) {
    code_arrives();
    world->asked[t]++;
    kind->execute(lock, node[t], section, &world->run_for[t]);
}

/* A patience that ends may leave the node in the queue. */
static void ask_with_patience(int t) {
    if (!lock_mcs_tp_acquire(lock, node[t], 1))
        return;
    world->asked[t]++;
    section(&world->run_for[t]);
    lock_mcs_tp_release(lock, node[t]);
}

static void thread(int t) {
    for (int i = 0; i < n_sections; i++) {
        if (impatient && t == 0)
            ask_with_patience(t);
        else
            ask(t);
        if (world->run_for[t] != world->asked[t])
            code_wrong("a call returned, and its section was not run once");
    }
}

static void setup(void) {
    world = code_alloc(sizeof *world);
    lock = code_alloc(kind->bytes);
    kind->init(lock);
    for (int i = 0; i < CODE_MAX_THREADS - 1; i++) {
        node[i] = code_alloc(kind->node_bytes + 1);
        kind->node_init(lock, node[i]);
    }
}

static const char *at_end(void) {
    uint32_t asked = 0;
    for (int i = 0; i < CODE_MAX_THREADS; i++)
        asked += world->asked[i];
    return world->n_run == asked ? NULL : "a section was lost";
}

static const struct {
    const char *name, *lock;
    int n_threads, n_sections;
    bool impatient;
} scenarios[] = {
    {"tas", "tas", 3, 2, false},
    {"ticket", "ticket", 3, 2, false},
    {"mcs", "mcs", 3, 2, false},
    {"clh", "clh", 3, 2, false},
    {"mcs-tp, two threads", "mcs-tp", 2, 2, false},
    {"mcs-tp, three threads", "mcs-tp", 3, 1, false},
    {"mcs-tp, one is impatient", "mcs-tp", 2, 2, true},
    {"mcs-tp, one of three is impatient", "mcs-tp", 3, 1, true},
    {"flat, two threads", "flat", 2, 2, false},
    {"flat, three threads", "flat", 3, 1, false},
};

static bool walk(size_t i, bool show, uint64_t *n_states) {
    kind = lock_find(scenarios[i].lock);
    n_sections = scenarios[i].n_sections;
    impatient = scenarios[i].impatient;
    struct code_scenario s = {scenarios[i].name, scenarios[i].n_threads, setup, thread, at_end, 0};
    return code_walk(&s, show, n_states);
}

static int must_fail(const char *name) {
    uint64_t n_states;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, name) != 0)
            continue;
        bool found = !walk(i, false, &n_states);
        printf("%sok 1 - the mistake is found by '%s' within %" PRIu64 " states: %s\n1..1\n", found ? "" : "not ", name,
               n_states, found ? code_why() : "nothing is wrong");
        return !found;
    }
    printf("Bail out! no scenario '%s'\n", name);
    return 1;
}

int main(int argc, char **argv) {
    size_t n = 0, failed = 0;
    uint64_t n_states;
    if (argc == 3 && strcmp(argv[1], "--wrong") == 0)
        return must_fail(argv[2]);
    for (; n < sizeof scenarios / sizeof *scenarios; n++) {
        bool right = walk(n, true, &n_states);
        printf("%sok %zu - %s: %" PRIu64 " states\n", right ? "" : "not ", n + 1, scenarios[n].name, n_states);
        fflush(stdout);
        failed += !right;
    }
    printf("1..%zu\n", n);
    return failed != 0;
}
