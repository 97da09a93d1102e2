/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own-lock-walk [--wrong SCENARIO]: every interleaving of the owner and visitors of a lock (switch/own_lock), with
 * store buffers. Sections do not overlap, and no thread waits for ever. With --wrong, for a source with a mistake in
 * it, the scenario must fail.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "code_sched.h"
#include "switch/own_lock.h"

uint16_t own_walk_after;

/* In the arena. */
static struct world {
    struct {
        void *at; /* NULL: the buffer is empty */
        uint64_t value;
        size_t bytes;
    } buffer[CODE_MAX_THREADS];
    uint32_t inside, n_run;
} * world;
static struct sbt_own_lock *lock;

static const struct scenario {
    const char *name;
    int n_threads;        /* the owner and visitors */
    int n_owns, n_visits; /* sections of each */
    uint32_t after;       /* entries under the lock before it is owned */
} scenarios[] = {
    {"one visitor", 2, 4, 2, 0},
    {"one visitor, owned later", 2, 5, 2, 1},
    {"two visitors", 3, 3, 1, 0},
};
static const struct scenario *scenario;

static void come_out(int t) {
    uint64_t before = 0;
    void *at = world->buffer[t].at;
    if (at == NULL)
        return;
    memcpy(&before, at, world->buffer[t].bytes);
    memcpy(at, &world->buffer[t].value, world->buffer[t].bytes);
    world->buffer[t].at = NULL;
    code_changed(at, &before, world->buffer[t].bytes);
}

void own_walk_drain(void) {
    if (world->buffer[code_self()].at != NULL)
        code_point(world->buffer[code_self()].at, CODE_WRITE);
    come_out(code_self());
}

void own_walk_may_drain(void) {
    if (world->buffer[code_self()].at != NULL && code_choose(2) != 0)
        own_walk_drain();
}

void own_walk_store(void *at, size_t bytes, uint64_t value) {
    own_walk_drain();
    int t = code_self();
    world->buffer[t].at = at;
    world->buffer[t].value = value;
    world->buffer[t].bytes = bytes;
}

void own_walk_fence(void) {
    code_point(world, CODE_WRITE);
    for (int t = 0; t < scenario->n_threads; t++)
        come_out(t);
}

static void section(void) {
    code_point(&world->inside, CODE_WRITE);
    if (world->inside++ != 0)
        code_wrong("two sections overlap");
    code_point(&world->inside, CODE_WRITE);
    world->n_run++;
    world->inside--;
}

static void owner(void) {
    for (int i = 0; i < scenario->n_owns; i++) {
        sbt_own_lock_enter(lock);
        section();
        sbt_own_lock_leave(lock);
    }
}

static void visitor(void) {
    for (int i = 0; i < scenario->n_visits; i++) {
        sbt_own_lock_visit(lock);
        section();
        sbt_own_lock_depart(lock);
    }
}

static void thread(int t) {
    if (t == 0)
        owner();
    else
        visitor();
    own_walk_drain();
}

static void setup(void) {
    world = code_alloc(sizeof *world);
    lock = code_alloc(sizeof *lock);
}

static const char *at_end(void) {
    uint32_t n = (uint32_t)(scenario->n_owns + (scenario->n_threads - 1) * scenario->n_visits);
    return world->n_run == n ? NULL : "a section was lost";
}

enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

static bool walk(size_t i, bool show, uint64_t *n_states) {
    scenario = &scenarios[i];
    own_walk_after = scenario->after;
    struct code_scenario s = {scenario->name, scenario->n_threads, setup, thread, at_end, 0};
    return code_walk(&s, show, n_states);
}

static int must_fail(const char *name) {
    uint64_t n_states;
    for (size_t i = 0; i < N_SCENARIOS; i++) {
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
    size_t failed = 0;
    uint64_t n_states;
    if (argc == 3 && strcmp(argv[1], "--wrong") == 0)
        return must_fail(argv[2]);
    for (size_t i = 0; i < N_SCENARIOS; i++) {
        bool right = walk(i, true, &n_states);
        printf("%sok %zu - %s: %" PRIu64 " states\n", right ? "" : "not ", i + 1, scenarios[i].name, n_states);
        fflush(stdout);
        failed += !right;
    }
    printf("1..%d\n", N_SCENARIOS);
    return failed != 0;
}
