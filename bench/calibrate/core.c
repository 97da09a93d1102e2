/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A core by itself, and a cache line between two cores. */
#include "calibrate.h"

#include <pthread.h>

static _Alignas(CALIBRATE_LINE) atomic_uint_fast64_t own;

static void add(uint64_t n) {
    for (; n > 0; n--)
        atomic_fetch_add(&own, 1);
}

/* Odd: the partner's turn; UINT64_MAX: the end. */
static _Alignas(CALIBRATE_LINE) _Atomic uint64_t ball;
static char rest_of_line[CALIBRATE_LINE] __attribute__((used));
static int pair[2];

/* Acquire and release order the two threads' turns; nothing but the number is handed over. They look without a pause,
   because the line is what is measured. */
static uint64_t next_after(uint64_t seen) {
    uint64_t now;
    while ((now = atomic_load_explicit(&ball, memory_order_acquire)) == seen)
        ;
    return now;
}

static void *partner(void *unused) {
    pin_to(pair[1]);
    for (uint64_t seen = 0; (seen = next_after(seen)) != UINT64_MAX;)
        atomic_store_explicit(&ball, ++seen, memory_order_release);
    return unused;
}

static void to_and_fro(uint64_t n) {
    for (; n > 0; n--) {
        uint64_t turn = atomic_load_explicit(&ball, memory_order_relaxed) + 1;
        atomic_store_explicit(&ball, turn, memory_order_release);
        if (next_after(turn) != turn + 1)
            fail("the ball came back with a wrong number");
    }
}

/* An operation is one way: half of a to and fro. */
static void one_way(uint64_t n) {
    to_and_fro((n + 1) / 2);
}

void measure_core(double seconds) {
    pthread_t thread;
    cpus_pair(pair);
    pin_to(pair[0]);
    samples_of_batches("atomic_ns", seconds / 2, add);
    must(pthread_create(&thread, NULL, partner, NULL), "pthread_create");
    to_and_fro(1000); /* the partner is there */
    samples_of_batches("line_transfer_ns", seconds / 2, one_way);
    atomic_store(&ball, UINT64_MAX);
    must(pthread_join(thread, NULL), "pthread_join");
}
