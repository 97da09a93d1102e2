/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every interleaving of real code, not of a model of it. Included before everything else in a source, this puts its
 * threads under code_sched.c: before each atomic access, and wherever the thread would wait, another thread may go on.
 *
 * All that threads share lies in an arena, and each thread has a small stack in it too, so a state is a block of bytes:
 * the walk copies it, makes one step of one thread, and knows a state that it has seen by its bytes (interleave.h). So
 * it ends although threads wait in loops, and nothing bounds the number of preemptions. Memory is sequentially
 * consistent: orders are argued in the sources, not walked here. What lies outside the arena must not change.
 *
 * A thread that has looked at all it waits for and has called code_relax() goes on when another thread has changed
 * something in the meantime. If that never happens it waits for ever, and the walk says so. Time is a choice: whatever
 * asks whether time has passed gets both answers.
 *
 * code_sched.c also plays the caches: each line of the arena is in some threads' caches, and an access that needs the
 * line from another cache is a transfer.
 */
#ifndef CODE_SCHED_H
#define CODE_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A walk copies all of that for each step. */
#ifndef CODE_MAX_THREADS
#define CODE_MAX_THREADS 4
#define CODE_MAX_LINES 24
#endif
enum { CODE_LINE = 64 };

enum code_access { CODE_READ, CODE_WRITE, CODE_DOORWAY /* the exchanges and additions by which threads queue */ };

/* Before an atomic access: another thread may go on here. */
void code_point(const volatile void *at, enum code_access access);
/* After one that may have changed `bytes` bytes: threads that wait look again. */
void code_changed(const volatile void *at, const void *before, size_t bytes);
/* An access that is no atomic one, to memory of the arena: of a section, or to what an atomic protects. */
void code_touch(const volatile void *at, enum code_access access);
void code_relax(void);
/* 0 to n - 1, each in a way of its own. */
uint32_t code_choose(uint32_t n);
bool code_time_passes(void);
/* Blocks until code_wake, if *word has that value. */
void code_wait(const uint32_t *word, uint32_t expected);
long code_wake(const uint32_t *word, uint32_t n);

#ifndef CODE_SCHED_ITSELF
#define CODE_CHANGES(pointer, access, operation)                                                                       \
    ({                                                                                                                 \
        code_point(pointer, access);                                                                                   \
        __typeof__(*(pointer)) code_before = *(pointer);                                                               \
        __auto_type code_result = operation;                                                                           \
        code_changed(pointer, &code_before, sizeof code_before);                                                       \
        code_result;                                                                                                   \
    })
#define __atomic_load_n(p, order) (code_point(p, CODE_READ), __atomic_load_n(p, order))
#define __atomic_store_n(p, value, order) ((void)CODE_CHANGES(p, CODE_WRITE, (__atomic_store_n(p, value, order), 0)))
#define __atomic_exchange_n(p, value, order) CODE_CHANGES(p, CODE_DOORWAY, __atomic_exchange_n(p, value, order))
#define __atomic_fetch_add(p, value, order) CODE_CHANGES(p, CODE_DOORWAY, __atomic_fetch_add(p, value, order))
#define __atomic_fetch_sub(p, value, order) CODE_CHANGES(p, CODE_WRITE, __atomic_fetch_sub(p, value, order))
#define __atomic_fetch_or(p, value, order) CODE_CHANGES(p, CODE_WRITE, __atomic_fetch_or(p, value, order))
#define __atomic_fetch_and(p, value, order) CODE_CHANGES(p, CODE_WRITE, __atomic_fetch_and(p, value, order))
#define __atomic_compare_exchange_n(p, expected, value, weak, success, failure)                                        \
    CODE_CHANGES(p, CODE_WRITE, __atomic_compare_exchange_n(p, expected, value, weak, success, failure))
#endif

/* ---- for the test ---- */

struct code_scenario {
    const char *name;
    int n_threads;
    void (*setup)(void); /* nothing is walked in it */
    void (*thread)(int thread);
    const char *(*at_end)(void); /* no thread can go on: NULL, or what is wrong */
    /* Threads that need not have ended then: services. A bit each. */
    uint32_t may_wait;
};

/* Zeroed memory of the arena, at the beginning of a line; in setup alone. */
void *code_alloc(size_t bytes);
/* The number of the calling thread. */
int code_self(void);
/* From here on the calling thread's next doorway is its arrival... */
void code_arrives(void);
/* ... and this is the number of the last one, from 1; 0: it has not arrived. code_served: it is no longer of interest.
 */
uint32_t code_arrival(int thread);
void code_served(int thread);
/* The walk shows a mistake. Does not return. */
_Noreturn void code_wrong(const char *what);

/* True if nothing is wrong in any interleaving; else a line about it, and the course, if `show`. */
bool code_walk(const struct code_scenario *scenario, bool show, uint64_t *n_states);
/* Why the last walk stopped. */
const char *code_why(void);

struct code_transfers {
    uint64_t transfers, invalidations; /* lines that came from another cache; lines that had to go from others */
};
/*
 * Runs the scenario once, each thread that can go on making one access in turn, as cores of the same speed do.
 * NULL, or what is wrong.
 */
const char *code_run(const struct code_scenario *scenario, struct code_transfers *transfers);
/* From here on in this run: what was before is not counted, as caches are cold. */
void code_count_from_here(void);

#endif
