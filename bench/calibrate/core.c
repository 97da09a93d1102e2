/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A core by itself, and a cache line between two cores.
 *
 * line_after_work: two threads, on two cores, work and then add twice to one line, as a lock and an unlock do, again
 * and again. A processor asks for the line while the work is under way, so much of the way is hidden. What is left is
 * the time of a round, less that of a round in which each thread has a line of its own. Only the work's last result is
 * needed for the next work: the processor sees the additions early, as far as it ever does. A sample counts if both
 * threads have made about as many rounds meanwhile: otherwise the other thread had lost its CPU.
 */
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

/* ---- a line between threads that work ---- */

/* Some 130 ns of work: twice as much hides no more. Short batches differ by how the two threads meet. */
enum { WORK_ROUNDS = 80, WORKS_A_SAMPLE = 500 };

static struct {
    _Alignas(CALIBRATE_LINE) atomic_uint_fast64_t shared;
    _Alignas(CALIBRATE_LINE) atomic_uint_fast64_t ours;
    _Alignas(CALIBRATE_LINE) atomic_uint_fast64_t theirs;
    _Alignas(CALIBRATE_LINE) atomic_uint_fast64_t n; /* rounds of the other thread */
    _Alignas(CALIBRATE_LINE) atomic_bool share, over;
} lines;

static uint64_t work_and_add(uint64_t seed, atomic_uint_fast64_t *line) {
    for (int i = 0; i < WORK_ROUNDS; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    __asm__ volatile("" : "+r"(seed)); /* or nothing would be computed */
    atomic_fetch_add(line, 1);
    atomic_fetch_add(line, 1);
    return seed;
}

/* The flags and the count carry no data. */
static void *works(void *unused) {
    uint64_t seed = 1;
    pin_to(pair[1]);
    while (!atomic_load_explicit(&lines.over, memory_order_relaxed)) {
        bool share = atomic_load_explicit(&lines.share, memory_order_relaxed);
        seed = work_and_add(seed, share ? &lines.shared : &lines.theirs);
        atomic_fetch_add_explicit(&lines.n, 1, memory_order_relaxed);
    }
    return unused;
}

/* The time of a round; 0: the other thread was not there for all of it. */
static double round_ns(bool share) {
    atomic_store_explicit(&lines.share, share, memory_order_relaxed);
    uint64_t seed = work_and_add(1, share ? &lines.shared : &lines.ours); /* by its end the other thread knows, too */
    uint64_t theirs = atomic_load_explicit(&lines.n, memory_order_relaxed), begin = now_ns();
    for (int i = 0; i < WORKS_A_SAMPLE; i++)
        seed = work_and_add(seed, share ? &lines.shared : &lines.ours);
    double took = (double)(now_ns() - begin);
    theirs = atomic_load_explicit(&lines.n, memory_order_relaxed) - theirs;
    return theirs * 10 > WORKS_A_SAMPLE * 9 && theirs * 9 < WORKS_A_SAMPLE * 10 ? took / WORKS_A_SAMPLE : 0;
}

static void measure_line_after_work(double seconds) {
    struct samples *s = samples_new("line_after_work_ns");
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), hopeless = hopeless_cpu_ns(seconds);
    pthread_t thread;
    must(pthread_create(&thread, NULL, works, NULL), "pthread_create");
    while (samples_wanted(s, end_ns) && !is_hopeless(hopeless)) {
        double apart = round_ns(false), together = round_ns(true);
        if (apart > 0 && together > 0)
            samples_add(s, together > apart ? together - apart : 0.01);
    }
    atomic_store_explicit(&lines.over, true, memory_order_relaxed);
    must(pthread_join(thread, NULL), "pthread_join");
}

void measure_core(double seconds) {
    pthread_t thread;
    cpus_pair(pair);
    pin_to(pair[0]);
    samples_of_batches("atomic_ns", seconds / 3, add);
    must(pthread_create(&thread, NULL, partner, NULL), "pthread_create");
    to_and_fro(1000); /* the partner is there */
    samples_of_batches("line_transfer_ns", seconds / 3, one_way);
    atomic_store(&ball, UINT64_MAX);
    must(pthread_join(thread, NULL), "pthread_join");
    measure_line_after_work(seconds / 3);
}
