/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * steal-walk [--wrong SCENARIO]: every interleaving of two or three threads that get and put tasks by the systems of
 * atac/pile*.c, their own code, with every way of their messages, every draw and some timeouts (steal_machine.h).
 *
 * Checked: each task is run once; no get returns NULL before all tasks have been run; all threads end. With --wrong,
 * for a source with a mistake in it, the scenario must fail.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "code_sched.h"
#include "machine.h"
#include "pile.h"
#include "steal_machine.h"
#include "subutai/atac.h"

enum { MOST_TASKS = 6 };

struct task {
    IWorkTask base;
    uint32_t n_run, n_children, first_child, unused;
};

static struct world {
    struct task task[MOST_TASKS];
    DWorkPile *pile[STEAL_MOST_THREADS];
    uint64_t n_put, n_run;
} * world;

/* Tasks of each thread at first; the first of them puts children when it is run, and looks for requests before. */
static const struct scenario {
    const char *name;
    int kind, n_threads;
    int tasks[STEAL_MOST_THREADS];
    int n_children, capacity;
    bool looks, instant, spin, eager; /* eager: asks early as often as it may */
    bool fills;                       /* thread 0 puts one more as soon as its queue has room */
    uint32_t n_timeouts, few, many;
} scenarios[] = {
    {"deque, one task", ATAC_VC_DEQUE, 2, {1, 0}, 0, 2, .n_timeouts = 1, .many = 2},
    {"deque, two tasks", ATAC_VC_DEQUE, 2, {2, 0}, 0, 2, .looks = true, .many = 2},
    {"deque, each has a task", ATAC_VC_DEQUE, 2, {1, 1}, 0, 2, .many = 1},
    {"deque, tasks put tasks", ATAC_VC_DEQUE, 2, {1, 0}, 2, 2, .many = 1, .eager = true},
    {"deque, locks spin", ATAC_VC_DEQUE, 2, {2, 0}, 0, 2, .spin = true, .many = 1},
    {"deque, three threads", ATAC_VC_DEQUE, 3, {1, 0, 0}, 0, 1, .instant = true, .many = 1},
    {"deque, asks early", ATAC_VC_DEQUE, 2, {1, 2}, 0, 3, .instant = true, .many = 1},
    {"cas, one task", ATAC_VC_CAS, 2, {1, 0}, 0, 2, .n_timeouts = 1, .many = 2},
    {"cas, two tasks", ATAC_VC_CAS, 2, {2, 0}, 0, 2, .looks = true, .many = 2},
    {"cas, each has a task", ATAC_VC_CAS, 2, {1, 1}, 0, 2, .many = 1},
    {"cas, tasks put tasks", ATAC_VC_CAS, 2, {1, 0}, 2, 2, .many = 1, .eager = true},
    {"cas, a place is used again", ATAC_VC_CAS, 2, {1, 0}, 1, 1, .looks = true, .many = 1},
    {"cas, three threads", ATAC_VC_CAS, 3, {1, 0, 0}, 0, 1, .instant = true, .many = 1},
    {"cas, three threads, two tasks", ATAC_VC_CAS, 3, {2, 0, 0}, 0, 2, .looks = true, .instant = true, .many = 1},
    {"cas, asks early", ATAC_VC_CAS, 2, {1, 2}, 0, 3, .instant = true, .many = 1},
    {"one queue, three threads", ATAC_GLOBAL_QUEUE, 3, {1, 0, 0}, 0, 1, .instant = true, .many = 1},
    {"one queue", ATAC_GLOBAL_QUEUE, 2, {1, 1}, 1, 3, .instant = true, .many = 1},
    {"Cilk style", ATAC_CILK, 2, {2, 0}, 1, 3, .instant = true, .many = 1},
    {"Cilk style, a full queue", ATAC_CILK, 2, {1, 0}, 0, 1, .instant = true, .many = 1, .fills = true},
};

static const struct scenario *now;

static void run_task(uint32_t self, struct task *task) {
    if (++task->n_run != 1)
        code_wrong("a task is run twice");
    world->n_run++;
    if (now->looks)
        DWorkPile_process_pending_request(world->pile[self]);
    for (uint32_t i = 0; i < task->n_children; i++) {
        world->n_put++;
        DWorkPile_put(world->pile[self], &world->task[task->first_child + i].base);
    }
}

static void setup(void) {
    uint32_t n = (uint32_t)now->n_threads, next = 0;
    world = code_alloc(sizeof *world);
    atac_running = (struct atac_settings){
        .few = now->few, .many = now->many, .patience_cycles = now->eager ? 0 : 4000, .mutexes_spin = now->spin};
    steal_machine_init(n, now->n_timeouts, now->instant);
    DWorkPileMaster *master = DWorkPileMaster_new(now->kind, now->n_threads, now->capacity);
    for (uint32_t t = 0; t < n; t++) {
        steal_machine_be(t);
        world->pile[t] = DWorkPileMaster_generateLocalWorkPile(master);
        for (int i = 0; i < now->tasks[t]; i++) {
            DWorkPile_put(world->pile[t], &world->task[next++].base);
            world->n_put++;
        }
    }
    world->task[0].n_children = (uint32_t)now->n_children;
    world->task[0].first_child = next;
}

/* Room that a thief makes: the queue is full before. */
static void fill(DWorkPile *pile) {
    const uint32_t top = pile->queue + QUEUE_TOP, bottom = pile->queue + QUEUE_BOTTOM;
    while (atac_machine->load(top) + (uint64_t)now->capacity <= atac_machine->load(bottom))
        code_relax();
    world->n_put++;
    DWorkPile_put(pile, &world->task[now->tasks[0]].base);
}

static void thread(int self) {
    if (self == now->n_threads)
        steal_network();
    DWorkPile *pile = world->pile[self];
    if (now->fills && self == 0)
        fill(pile);
    for (;;) {
        DWorkPile_update_filter(pile);
        DWorkPile_process_pending_request(pile);
        IWorkTask *task = DWorkPile_get(pile);
        if (task == NULL)
            break;
        run_task((uint32_t)self, (struct task *)(void *)task);
    }
    if (world->n_run != world->n_put)
        code_wrong("a thread has got NULL before all tasks were run");
}

static const char *at_end(void) {
    for (int i = 0; i < MOST_TASKS; i++)
        if (world->task[i].n_run > 1)
            return "a task was run twice";
    return world->n_run == world->n_put ? NULL : "a task was lost";
}

static bool walk(const struct scenario *scenario, bool show, uint64_t *n_states) {
    now = scenario;
    struct code_scenario s = {scenario->name,           scenario->n_threads + !scenario->instant, setup, thread, at_end,
                              1u << scenario->n_threads};
    return code_walk(&s, show, n_states);
}

static int must_fail(const char *name) {
    uint64_t n_states;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, name) != 0)
            continue;
        bool found = !walk(&scenarios[i], false, &n_states);
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
        bool right = walk(&scenarios[n], true, &n_states);
        printf("%sok %zu - %s: %" PRIu64 " states%s%s\n", right ? "" : "not ", n + 1, scenarios[n].name, n_states,
               right ? "" : ": ", right ? "" : code_why());
        fflush(stdout);
        failed += !right;
    }
    printf("1..%zu\n", n);
    return failed != 0;
}
