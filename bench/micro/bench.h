/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * subutai-bench: small programs that do nothing but synchronize, one kind at a time.
 *
 * The program is an ordinary pthread consumer: it is not linked with the library and measures whatever pthread
 * implementation it is started under. So that only the kind's own objects are measured, everything around a run
 * (start gate, time limit, end) uses pipes and poll(2), never a mutex or a condition variable.
 *
 * A kind is setup(), then worker() in each of n_workers() threads at once, then finish() alone. Time runs from the
 * opening of the gate to the return of the last worker. A worker ends when bench_more() says so. If the threads of a
 * kind wait for each other, one of them makes that decision. It hands it to the others through the kind's own objects,
 * so that no thread waits for a thread that has gone.
 *
 * Invariants are checked on plain variables that only the object under test protects: a lock or barrier that fails
 * to exclude or order shows as a wrong count.
 */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus /* cxx.cpp */
#include <atomic>
using std::atomic_bool, std::atomic_load_explicit, std::memory_order_relaxed;
#define _Alignas alignas
#define _Noreturn [[noreturn]]
extern "C" {
#else
#include <stdatomic.h>
#endif

/* Two lines: adjacent-line prefetch makes 64 bytes too few to keep two threads' data apart. */
#define BENCH_LINE 128

struct bench_worker {
    _Alignas(BENCH_LINE) int id;
    uint64_t ops; /* done so far; owner writes, finish() reads */
    pthread_t thread;
};

struct json;
struct bench {
    int threads; /* as asked for; a kind may need one more (see n_workers) */
    uint64_t cs_ns, think_ns;
    unsigned write_percent;
    const char *lock;   /* of bench/locks, perhaps with +yield behind it; NULL: the kind has none */
    unsigned lines;     /* shared cache lines that a section touches */
    double seconds;     /* run time, if by_ops is false */
    uint64_t ops_asked; /* operations of all threads, if by_ops is true */
    bool by_ops;

    void (*put)(const struct bench *b, struct json *j); /* by setup(): more members of the line of JSON */

    int n_workers;
    struct bench_worker *workers;
    _Alignas(BENCH_LINE) atomic_bool stop;
};

/* What --cs-ns, --think-ns, --write-percent, --lock and --lines mean to a kind; a non-zero value that means nothing is
 * refused. */
enum bench_uses { BENCH_CS = 1, BENCH_THINK = 2, BENCH_WRITES = 4, BENCH_FAIRNESS = 8, BENCH_LOCKS = 16 };

enum { BENCH_MOST_LINES = 64 };

struct bench_kind {
    const char *name;
    const char *operation; /* what one of "ops" is; the rest is 0 if another program has the kind (kinds.c) */
    unsigned uses;         /* set of enum bench_uses; BENCH_FAIRNESS: ops_min and ops_max of the workers are printed */
    int (*n_workers)(const struct bench *b);
    void (*setup)(struct bench *b);
    void (*worker)(struct bench *b, struct bench_worker *w);
    uint64_t (*finish)(struct bench *b); /* checks, and returns the number of operations */
};

/* The program's kinds, ended by NULL. */
extern const struct bench_kind *const bench_kinds[];

extern const struct bench_kind bench_uncontended, bench_contended, bench_barrier, bench_broadcast, bench_turn_ring,
    bench_bounded_queue, bench_signal_storm, bench_rwlock, bench_semaphore, bench_long_wait, bench_yield,
    bench_ping_pong, bench_small_locks, bench_trylock_barrier, bench_omp_barrier, bench_omp_parallel,
    bench_yield_barrier, bench_locks;

/* One line on stderr, exit status 1, at once and without atexit handlers: other threads may be blocked for ever. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For setup(): one line on stderr, exit status 2. The kind cannot be run like that, or not on this machine. */
_Noreturn void bench_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails unless the two counts are equal. */
void bench_check_equal(const char *what, uint64_t got, uint64_t want);

/* Keeps the processor busy for about `ns` nanoseconds without a clock call; 0 costs one branch. */
void bench_busy_ns(uint64_t ns);

/* Zeroed, aligned to BENCH_LINE, never NULL. */
void *bench_alloc(size_t n, size_t size);

/* Sum over all workers. */
uint64_t bench_total_ops(const struct bench *b);

int bench_n_threads(const struct bench *b);

/* Kinds in which half of the threads, the first ones, produce items and the others consume them; at least two. */
int bench_at_least_two(const struct bench *b);
int bench_n_producers(const struct bench *b);
/*
 * Fails unless as many items were taken as made, with the same sum of all; `sums` has each worker's. The number taken.
 */
uint64_t bench_items_taken(const struct bench *b, const uint64_t *sums);

/* This worker's share of the operations asked for if `n_sharing` workers do them; without --ops there is no end. */
static inline uint64_t bench_share(const struct bench *b, uint64_t n_sharing) {
    return b->by_ops ? (b->ops_asked + n_sharing - 1) / n_sharing : UINT64_MAX;
}

/*
 * Relaxed: the flag carries no data, and a late reader only does another operation. The first is done in any case: a
 * thread may be given its core only when the time is over.
 */
static inline bool bench_more(struct bench *b, uint64_t done, uint64_t share) {
    return done < share && (!atomic_load_explicit(&b->stop, memory_order_relaxed) || done == 0);
}

static inline void bench_must(int error, const char *call) {
    if (__builtin_expect(error != 0, 0))
        bench_fail("%s: error %d", call, error);
}

#ifdef __cplusplus
}
#endif

#endif
