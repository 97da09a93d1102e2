/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rcl-walk [--wrong SCENARIO | --part K/N]: every interleaving of clients and servicing threads over the mailboxes of
 * rcl/mailbox.c, the runtime's own code.
 *
 * Checked: each request is served once, before its client goes on; sections of one lock never overlap; no client waits
 * for ever, also if the server sleeps when it is idle, if clients and sections that wait for a lock sleep, while a
 * section has given its lock up, and if one blocks, so that another thread of the server serves meanwhile. And a
 * section moves at most three cache lines. With --wrong, for a source with a mistake in it, the scenario must fail.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "code_sched.h"
#include "part.h"
#include "rcl/mailbox.h"
#include "rcl/wait.h"

enum { MOST_CLIENTS = 8, N_LOCKS = 2 };

/* In the arena. */
static struct world {
    uint32_t inside[N_LOCKS], signalled;
    uint32_t run_for[MOST_CLIENTS], asked[MOST_CLIENTS];
    uint32_t n_active, is_parked[CODE_MAX_THREADS]; /* as in rcl/server.h */
} * world;
static struct rcl_lock *lock[N_LOCKS];
static struct rcl_mailbox *mailbox[MOST_CLIENTS];
static uint32_t *asleep;

/*
 * How a scenario is: two locks; the idle server sleeps; a section gives its lock up; what waits for long sleeps; the
 * first client's sections block.
 */
enum { TWO_LOCKS = 1, DOZES = 2, WAITS = 4, SLEEPS = 8, BLOCKS = 16 };

/* Of the scenario. */
static int n_clients, n_servicing, n_sections;
static bool two_locks, dozes, waits, blocks, counts;
bool rcl_walk_sleeps;

/* Which lock client `t` asks for in its i-th section. */
static int lock_of(int t, int i) {
    return two_locks ? (t + i) % N_LOCKS : 0;
}

static void section(void *context) {
    uint32_t *run_for = context;
    int t = (int)(run_for - world->run_for), l = lock_of(t, (int)*run_for);
    if (counts)
        return;
    if (world->inside[l]++ != 0)
        code_wrong("two sections of one lock overlap");
    code_touch(run_for, CODE_WRITE);
    ++*run_for;
    world->inside[l]--;
}

/* As rcl_cond_wait: gives the lock up until another section, of the same lock, has signalled. */
static void waiting_section(void *context) {
    section(context);
    while (__atomic_load_n(&world->signalled, __ATOMIC_RELAXED) == 0) {
        rcl_keep(mailbox[0]);
        rcl_lock_free(lock[0]);
        rcl_nudge(asleep);
        while (__atomic_load_n(&world->signalled, __ATOMIC_RELAXED) == 0)
            code_relax();
        rcl_lock_wait(lock[0]);
    }
}

static void signalling_section(void *context) {
    section(context);
    uint32_t zero = 0;
    __atomic_store_n(&world->signalled, 1, __ATOMIC_RELAXED);
    code_changed(&world->signalled, &zero, sizeof zero);
}

/* ---- the pool: as in rcl/server.c, where a mutex makes each change one step ---- */

static void await_activation(uint32_t *is_parked) {
    while (__atomic_load_n(is_parked, __ATOMIC_RELAXED) != 0)
        rcl_sleep(is_parked, 1, NULL);
}

/* As rcl_park_surplus. */
static bool park_surplus(int t) {
    code_touch(&world->n_active, CODE_WRITE);
    if (world->n_active == 1)
        return false;
    world->n_active--;
    world->is_parked[t] = 1;
    await_activation(&world->is_parked[t]);
    return true;
}

/* As in a system call: the management thread makes the other servicing thread active. */
static void blocking_section(void *context) {
    const int other = 2 * n_clients + 1 - code_self();
    section(context);
    code_touch(&world->n_active, CODE_WRITE);
    if (world->n_active == 1) {
        world->is_parked[other] = 0;
        rcl_wake(&world->is_parked[other], 1);
    } else {
        world->n_active--;
    }
    code_touch(&world->n_active, CODE_WRITE);
    world->n_active++;
}

/* ---- threads ---- */

static rcl_section *section_of(int t) {
    if (t == 0)
        return blocks ? blocking_section : waits ? waiting_section : section;
    return waits ? signalling_section : section;
}

static void client(int t) {
    for (int i = 0; i < n_sections; i++) {
        rcl_section *s = section_of(t);
        world->asked[t]++;
        code_touch(&lock[lock_of(t, i)]->server, CODE_READ); /* as rcl_execute */
        rcl_post(mailbox[t], lock[lock_of(t, i)], s, &world->run_for[t], asleep);
        rcl_await(mailbox[t]);
        if (!counts && world->run_for[t] != world->asked[t])
            code_wrong("a client went on, and its section was not run once");
    }
}

/* No server: as nested sections, and sections after a condition wait, the threads wait for the lock themselves. */
static void take_turns(int t) {
    for (int i = 0; i < n_sections; i++) {
        rcl_lock_wait(lock[0]);
        section(&world->run_for[t]);
        rcl_lock_free(lock[0]);
    }
}

static void run(struct rcl_mailbox *m, struct rcl_lock *l, rcl_section *function, void *context) {
    (void)m, (void)l;
    if (function != section && function != waiting_section && function != signalling_section &&
        function != blocking_section)
        code_wrong("a function is called that is no section");
    function(context);
}

static bool pass(void *unused) {
    bool any = false;
    (void)unused;
    for (int i = 0; i < n_clients; i++)
        any = rcl_serve(mailbox[i], run) || any;
    return any;
}

static void thread(int t) {
    if (t < n_clients && n_servicing == 0)
        take_turns(t);
    else if (t < n_clients)
        client(t);
    if (blocks && t > n_clients)
        await_activation(&world->is_parked[t]);
    while (t >= n_clients)
        if (!pass(NULL) && !(blocks && park_surplus(t))) {
            if (dozes && (blocks || t == n_clients))
                rcl_doze(asleep, pass, NULL);
            else
                code_relax();
        }
}

static void setup(void) {
    world = code_alloc(sizeof *world);
    for (int i = 0; i < N_LOCKS; i++)
        lock[i] = code_alloc(sizeof **lock);
    for (int i = 0; i < n_clients; i++)
        mailbox[i] = code_alloc(sizeof **mailbox);
    asleep = code_alloc(sizeof *asleep);
    world->n_active = 1;
    world->is_parked[n_clients + 1] = 1;
}

/* By parts (part.h) every fourth one: the long ones are spread. */
static const struct {
    const char *name;
    int n_clients, n_servicing, n_sections;
    unsigned how;
} scenarios[] = {
    {"two clients, one servicing thread", 2, 1, 2, 0},
    {"two clients, one servicing thread that sleeps", 2, 1, 2, DOZES},
    {"one client, two locks, two servicing threads", 1, 2, 3, TWO_LOCKS},
    {"two clients, two servicing threads", 2, 2, 1, 0},
    {"two clients, two locks, two servicing threads", 2, 2, 1, TWO_LOCKS},
    {"a section waits for another's signal", 2, 2, 1, WAITS},
    {"a section waits while the other thread sleeps", 2, 2, 1, DOZES | WAITS},
    {"three threads sleep for a lock", 3, 0, 2, SLEEPS},
    {"two clients sleep, two servicing threads", 2, 2, 1, SLEEPS},
    {"a client sleeps, and its section waits", 2, 2, 1, WAITS | SLEEPS},
    {"a client sleeps", 1, 1, 2, DOZES | SLEEPS},
    {"a section blocks, and the other thread sleeps", 1, 2, 2, DOZES | BLOCKS},
    {"a section blocks beside another client", 2, 2, 1, DOZES | BLOCKS},
};

static struct code_scenario scenario_of(size_t i) {
    n_clients = scenarios[i].n_clients;
    n_sections = scenarios[i].n_sections;
    two_locks = (scenarios[i].how & TWO_LOCKS) != 0;
    dozes = (scenarios[i].how & DOZES) != 0;
    waits = (scenarios[i].how & WAITS) != 0;
    blocks = (scenarios[i].how & BLOCKS) != 0;
    rcl_walk_sleeps = (scenarios[i].how & SLEEPS) != 0;
    n_servicing = scenarios[i].n_servicing;
    counts = false;
    int n = n_clients + n_servicing;
    return (struct code_scenario){scenarios[i].name, n, setup, thread, NULL, (1u << n) - (1u << n_clients)};
}

static int must_fail(const char *name) {
    uint64_t n_states;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, name) != 0)
            continue;
        struct code_scenario s = scenario_of(i);
        bool found = !code_walk(&s, false, &n_states);
        printf("%sok 1 - the mistake is found by '%s' within %" PRIu64 " states: %s\n1..1\n", found ? "" : "not ", name,
               n_states, found ? code_why() : "nothing is wrong");
        return !found;
    }
    printf("Bail out! no scenario '%s'\n", name);
    return 1;
}

/* Of sections that touch no shared line: what the lock itself moves. True if it is at most three lines. */
static bool transfers_are_few(size_t n, int clients) {
    struct code_transfers counted;
    n_clients = clients;
    n_servicing = 1;
    n_sections = 200;
    two_locks = dozes = waits = blocks = rcl_walk_sleeps = false;
    counts = true;
    struct code_scenario s = {"", clients + 1, setup, thread, NULL, 1u << clients};
    const char *why = code_run(&s, &counted);
    double each = (double)counted.transfers / (clients * n_sections);
    bool few = why == NULL && each <= 3;
    printf("%sok %zu - %d clients: %.2f transfers and %.2f invalidations a section%s%s\n", few ? "" : "not ", n,
           clients, each, (double)counted.invalidations / (clients * n_sections), why != NULL ? ": " : "",
           why != NULL ? why : "");
    return few;
}

int main(int argc, char **argv) {
    const size_t n_scenarios = sizeof scenarios / sizeof *scenarios;
    size_t n = 0, failed = 0;
    uint64_t n_states;
    struct part part;
    if (argc == 3 && strcmp(argv[1], "--wrong") == 0)
        return must_fail(argv[2]);
    if (!part_parse(argc, argv, &part)) {
        fprintf(stderr, "usage: %s [--wrong SCENARIO | --part K/N]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < n_scenarios; i++) {
        if (!part_has(&part, i))
            continue;
        struct code_scenario s = scenario_of(i);
        bool right = code_walk(&s, true, &n_states);
        printf("%sok %zu - %s: %" PRIu64 " states\n", right ? "" : "not ", ++n, scenarios[i].name, n_states);
        fflush(stdout);
        failed += !right;
    }
    for (int clients = 1; part_has(&part, n_scenarios) && clients <= 3; clients++)
        failed += !transfers_are_few(++n, clients);
    printf("1..%zu\n", n);
    return failed != 0;
}
