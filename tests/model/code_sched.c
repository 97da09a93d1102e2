/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define CODE_SCHED_ITSELF
#include "code_sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interleave.h"
#include "switch/regs.h"

#ifndef CODE_STACK_BYTES
#define CODE_STACK_BYTES 2048
#endif
enum { STACK_BYTES = CODE_STACK_BYTES, NO_MORE_THAN = 1000000 /* steps of a run */, MAX_DEPTH = 5000 };

/* Words to the end of the line. */
#define CODE_UNUSED ((CODE_LINE - (CODE_MAX_THREADS * 32 + 8) % CODE_LINE) / 4)

enum status { GOES_ON, LOOKS_LATER, SLEEPS, ENDED };

struct thread {
    void *sp;
    const uint32_t *word; /* that it sleeps on */
    uint32_t n_ways;      /* of its next step */
    uint32_t way;
    uint8_t status;
    uint8_t changed; /* another thread has changed something since it began to look */
    uint8_t timed;   /* it waits for time too */
    uint8_t arriving;
    uint32_t arrival;
};

/*
 * All that a state is, but for the lines of the arena that are not used. Pointers into it stay right: it is copied to
 * this place before each step.
 */
static struct live {
    _Alignas(CODE_LINE) unsigned char stack[CODE_MAX_THREADS][STACK_BYTES];
    struct thread thread[CODE_MAX_THREADS];
    uint32_t n_arrivals, n_lines;
    uint32_t unused[CODE_UNUSED]; /* no padding: states are compared as memory */
    _Alignas(CODE_LINE) unsigned char arena[CODE_MAX_LINES][CODE_LINE];
} live, first;
static size_t state_bytes; /* of the scenario */
_Static_assert(sizeof(struct thread) == 32, "no padding, and CODE_UNUSED knows it");
_Static_assert(offsetof(struct live, arena) == offsetof(struct live, unused) + 4 * CODE_UNUSED, "no padding");

static const struct code_scenario *scenario;
static const char *wrong;
static struct sbt_regs root;
static int current = -1; /* -1: setup, or between steps */

/* The caches, in code_run alone: which threads have a line. */
static bool counting;
static uint32_t sharers[CODE_MAX_LINES];
static struct code_transfers counted;

static void to_root(void) {
    struct sbt_regs from, to = {root.sp, sbt_tls_base()};
    int me = current;
    current = -1;
    /* The switch leaves everything that is alive on the stack, at sp and above. */
    sbt_regs_switch(me >= 0 ? (struct sbt_regs *)&live.thread[me].sp : &from, &to, NULL);
}

_Noreturn void code_wrong(const char *what) {
    if (wrong == NULL)
        wrong = what;
    if (current >= 0)
        live.thread[current].status = ENDED;
    to_root();
    abort();
}

static size_t line_of(const volatile void *at) {
    return (size_t)((uintptr_t)at - (uintptr_t)live.arena) / CODE_LINE;
}

static void count(const volatile void *at, enum code_access access) {
    size_t line = line_of(at);
    uint32_t me = 1u << current;
    if (!counting || line >= CODE_MAX_LINES)
        return;
    counted.transfers += (sharers[line] & me) == 0 && sharers[line] != 0;
    counted.invalidations += access != CODE_READ && (sharers[line] & me) != 0 && sharers[line] != me;
    sharers[line] = access == CODE_READ ? sharers[line] | me : me;
}

void code_count_from_here(void) {
    counted = (struct code_transfers){0, 0};
}

static void leave(void) {
    if (current >= 0)
        to_root();
}

void code_point(const volatile void *at, enum code_access access) {
    if (current < 0)
        return;
    leave();
    count(at, access);
    struct thread *t = &live.thread[current];
    if (access == CODE_DOORWAY && t->arriving) {
        t->arriving = 0;
        t->arrival = ++live.n_arrivals;
    }
}

void code_touch(const volatile void *at, enum code_access access) {
    code_point(at, access);
}

void code_changed(const volatile void *at, const void *before, size_t bytes) {
    if (current < 0 || memcmp((const void *)at, before, bytes) == 0)
        return;
    for (int i = 0; i < scenario->n_threads; i++) {
        struct thread *t = &live.thread[i];
        if (i == current)
            continue;
        if (t->status == LOOKS_LATER)
            t->status = GOES_ON;
        else
            t->changed = 1;
    }
}

void code_relax(void) {
    struct thread *t = &live.thread[current];
    if (!t->changed && !t->timed)
        t->status = LOOKS_LATER;
    t->changed = t->timed = 0;
    leave();
}

uint32_t code_choose(uint32_t n) {
    struct thread *t = &live.thread[current];
    int me = current;
    if (n == 1)
        return 0;
    t->n_ways = n;
    leave();
    return live.thread[me].way;
}

bool code_time_passes(void) {
    if (current < 0)
        return false;
    live.thread[current].timed = 1;
    return code_choose(2) != 0;
}

void code_wait(const uint32_t *word, uint32_t expected) {
    code_point(word, CODE_READ);
    if (*word != expected)
        return;
    live.thread[current].status = SLEEPS;
    live.thread[current].word = word;
    leave();
}

/* Which sleepers wake is a choice, where there are more than n. */
long code_wake(const uint32_t *word, uint32_t n) {
    uint32_t woken = 0;
    code_point(word, CODE_READ);
    for (; woken < n; woken++) {
        int asleep[CODE_MAX_THREADS];
        uint32_t n_asleep = 0;
        for (int i = 0; i < scenario->n_threads; i++)
            if (live.thread[i].status == SLEEPS && live.thread[i].word == word)
                asleep[n_asleep++] = i;
        if (n_asleep == 0)
            break;
        struct thread *t = &live.thread[asleep[code_choose(n_asleep)]];
        t->status = GOES_ON;
        t->word = NULL;
    }
    return woken;
}

void *code_alloc(size_t bytes) {
    size_t n = (bytes + CODE_LINE - 1) / CODE_LINE;
    if (live.n_lines + n > CODE_MAX_LINES) {
        printf("Bail out! the arena is too small\n");
        exit(1);
    }
    live.n_lines += (uint32_t)n;
    return live.arena[live.n_lines - n];
}

int code_self(void) {
    return current;
}

void code_arrives(void) {
    live.thread[current].arriving = 1;
    live.thread[current].arrival = 0;
}

uint32_t code_arrival(int thread) {
    return live.thread[thread].arrival;
}

void code_served(int thread) {
    live.thread[thread].arrival = 0;
}

static void begin(void *value) {
    (void)value;
    int me = current;
    scenario->thread(me);
    live.thread[me].status = ENDED;
    to_root();
    abort();
}

static void set_up(void) {
    memset(&live, 0, sizeof live);
    wrong = NULL;
    current = -1;
    scenario->setup();
    for (int i = 0; i < scenario->n_threads; i++) {
        struct sbt_regs regs;
        sbt_regs_make(&regs, live.stack[i], STACK_BYTES, begin, sbt_tls_base());
        live.thread[i].sp = regs.sp;
        live.thread[i].n_ways = 1;
    }
}

/* One step of a thread in `live`. */
static void advance(int thread, uint32_t way) {
    struct thread *t = &live.thread[thread];
    struct sbt_regs to = {t->sp, sbt_tls_base()};
    t->n_ways = 1;
    t->way = way;
    current = thread;
    sbt_regs_switch(&root, &to, NULL);
    current = -1;
    t->way = 0;
    size_t below = (size_t)((uintptr_t)t->sp - (uintptr_t)live.stack[thread]);
    if (below > STACK_BYTES || below < 256) {
        printf("Bail out! a stack is too small\n");
        exit(1);
    }
    /* What is not alive must not tell two states apart. */
    memset(live.stack[thread], 0, t->status == ENDED ? STACK_BYTES : below);
    if (t->status == ENDED)
        t->sp = live.stack[thread] + STACK_BYTES;
}

static int step(void *state, int thread, int way) {
    const struct live *s = state;
    if (s->thread[thread].status != GOES_ON)
        return 0;
    int n_ways = (int)s->thread[thread].n_ways;
    memcpy(&live, s, state_bytes);
    advance(thread, (uint32_t)way);
    memcpy(state, &live, state_bytes);
    return n_ways;
}

static const char *end_of(void) {
    for (int i = 0; i < scenario->n_threads; i++)
        if (live.thread[i].status != ENDED && (scenario->may_wait >> i & 1) == 0)
            return "a thread waits for ever";
    return scenario->at_end != NULL ? scenario->at_end() : NULL;
}

static void at_end(const void *state) {
    memcpy(&live, state, state_bytes);
    if (wrong == NULL)
        wrong = end_of();
}

static void print(const void *state, int thread, int way) {
    (void)state;
    printf("#   thread %d%s\n", thread, way != 0 ? ", other way" : "");
}

bool code_walk(const struct code_scenario *which, bool show, uint64_t *n_states) {
    scenario = which;
    counting = false;
    set_up();
    state_bytes = offsetof(struct live, arena) + (size_t)live.n_lines * CODE_LINE;
    memcpy(&first, &live, state_bytes);
    struct interleave what = {state_bytes, which->n_threads, step, at_end, &wrong, MAX_DEPTH, print};
    return interleave_walk(&what, &first, show, n_states);
}

const char *code_why(void) {
    return wrong != NULL ? wrong : "a way without an end";
}

const char *code_run(const struct code_scenario *which, struct code_transfers *transfers) {
    bool any = true;
    scenario = which;
    counting = true;
    memset(sharers, 0, sizeof sharers);
    code_count_from_here();
    set_up();
    for (int n = 0; any && wrong == NULL; n++) {
        any = false;
        for (int i = 0; i < which->n_threads && wrong == NULL; i++)
            if (live.thread[i].status == GOES_ON) {
                advance(i, 0);
                any = true;
            }
        if (n == NO_MORE_THAN)
            wrong = "it does not come to an end";
    }
    counting = false;
    *transfers = counted;
    return wrong != NULL ? wrong : end_of();
}
