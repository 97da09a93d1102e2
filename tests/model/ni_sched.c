/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define NI_SCHED_ITSELF
#include "ni_sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "choices.h"

enum { STACK_BYTES = 64 * 1024, MAX_TICKS = 64, TURN = 300 };

struct thread {
    ucontext_t context;
    const uint32_t *word; /* blocked on it */
    uint32_t ended;
    void *(*routine)(void *);
    void *argument;
};

static char stacks[SCHED_MAX_THREADS][STACK_BYTES] __attribute__((aligned(64)));
static struct thread thread[SCHED_MAX_THREADS];
static uint32_t n_threads, current;
static uint32_t ready, paused; /* a bit a thread: can go on; pauses. The others are blocked or have ended. */
static uint32_t interrupted;   /* a bit a thread, whatever else it does: does not go on for now */
static ucontext_t root;
static bool under_way;
static const char *wrong;

static struct choices choices;
static uint32_t n_preempted, max_preempted, ticks_in_vain, ticker, in_a_row;

static void to_root(void) {
    under_way = false;
    swapcontext(&thread[current].context, &root);
    abort();
}

void sched_wrong(const char *what) {
    if (wrong == NULL)
        wrong = what;
    to_root();
    abort();
}

static uint32_t choose(uint32_t n) {
    if (n == 1)
        return 0;
    if (choices_are_full(&choices))
        sched_wrong("it does not come to an end");
    return choices_choose(&choices, n);
}

static void take(uint32_t next) {
    if (next != ticker)
        ticks_in_vain = 0;
    if (choices_are_full(&choices))
        sched_wrong("it does not come to an end");
    choices.course[choices.n_points++] = (uint8_t)next;
}

/* No thread is ready: the next that pauses goes on. */
static uint32_t tick(void) {
    for (uint32_t k = 1; k <= n_threads; k++) {
        uint32_t i = (ticker + k) % n_threads;
        if ((paused & ~interrupted & 1u << i) == 0)
            continue;
        ticker = i;
        if (++ticks_in_vain > MAX_TICKS)
            sched_wrong("a thread looks again for ever");
        return i;
    }
    for (uint32_t i = 0; i < n_threads; i++)
        if (!thread[i].ended)
            sched_wrong("a thread waits for ever");
    to_root();
    abort();
}

/* The thread that runs goes on for as long as it can; another thread in its place is a preemption. */
static void reschedule(void) {
    uint32_t last = current, me = 1u << last, stays = (ready & me) != 0, next;
    uint32_t others = !stays ? ready : n_preempted < max_preempted ? (ready | paused) & ~me : 0;
    others &= ~interrupted;
    if (stays + bits_count(others) == 0) {
        next = tick();
    } else {
        uint32_t which = choose(stays + bits_count(others));
        next = which < stays ? last : bits_nth(others, which - stays);
        n_preempted += stays && next != last;
    }
    take(next);
    ready |= 1u << next;
    paused &= ~(1u << next);
    current = next;
    in_a_row = next == last ? in_a_row + 1 : 0;
    if (next != last)
        swapcontext(&thread[last].context, &thread[next].context);
}

void sched_pause(void) {
    ready &= ~(1u << current);
    paused |= 1u << current;
    reschedule();
}

/* A thread that looks again and again for what another has to do comes to the end of its turn. */
void sched_point(void) {
    if (under_way && in_a_row >= TURN)
        sched_pause();
    else if (under_way)
        reschedule();
}

void sched_wait(const uint32_t *word, uint32_t expected) {
    sched_point();
    if (*(const volatile uint32_t *)word != expected)
        return;
    ready &= ~(1u << current);
    thread[current].word = word;
    reschedule();
}

long sched_wake(const uint32_t *word) {
    long n = 0;
    sched_point();
    for (uint32_t i = 0; i < n_threads; i++)
        if (((ready | paused) & 1u << i) == 0 && !thread[i].ended && thread[i].word == word) {
            ready |= 1u << i;
            n++;
        }
    return n;
}

static void begin(void) {
    struct thread *t = &thread[current];
    t->routine(t->argument);
    t->ended = 1;
    sched_wake(&t->ended);
    ready &= ~(1u << current);
    reschedule();
    abort();
}

uint32_t sched_thread(void *(*routine)(void *), void *argument) {
    if (n_threads == SCHED_MAX_THREADS)
        sched_wrong("more threads than the test has room for");
    struct thread *t = &thread[n_threads];
    t->routine = routine;
    t->argument = argument;
    t->ended = 0;
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = stacks[n_threads];
    t->context.uc_stack.ss_size = STACK_BYTES;
    t->context.uc_link = NULL;
    makecontext(&t->context, begin, 0);
    ready |= 1u << n_threads;
    return n_threads++;
}

bool sched_has_ended(uint32_t i) {
    return thread[i].ended != 0;
}

void sched_await_end(uint32_t i) {
    while (!sched_has_ended(i))
        sched_wait(&thread[i].ended, 0);
}

void sched_alone(bool alone) {
    under_way = !alone;
}

uint32_t sched_self(void) {
    return current;
}

void sched_interrupt(uint32_t i, bool interrupt) {
    interrupted = interrupt ? interrupted | 1u << i : interrupted & ~(1u << i);
}

void sched_vanish(uint32_t i) {
    thread[i].ended = 1;
    ready &= ~(1u << i);
    paused &= ~(1u << i);
}

static void run(sched_setup *setup, const char *(*at_end)(void)) {
    n_threads = ready = paused = interrupted = n_preempted = ticks_in_vain = ticker = in_a_row = 0;
    choices.n = choices.n_points = 0;
    wrong = NULL;
    setup();
    under_way = true;
    current = choose(n_threads);
    swapcontext(&root, &thread[current].context);
    if (wrong == NULL)
        wrong = at_end();
}

const char *sched_walk(uint32_t n_preemptions, sched_setup *setup, const char *(*at_end)(void), bool show,
                       uint64_t *n) {
    max_preempted = n_preemptions;
    choices.n_given = 0;
    for (*n = 1;; ++*n) {
        run(setup, at_end);
        if (wrong != NULL) {
            if (show) {
                printf("# %s; course:", wrong);
                choices_show_course(&choices);
            }
            return wrong;
        }
        if (!choices_next(&choices))
            return NULL;
    }
}
