/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Read-write locks of every kind: a writer is alone, readers see no writer, the errors of the owner, all finish. */
#include "objects.h"

#include <stdlib.h>

enum { KIND_STATIC_WRITER = 3, KIND_PSHARED, N_RWLOCK_KINDS = KIND_PSHARED + GLIBC_KINDS };

struct book {
    pthread_rwlock_t lock;
    unsigned kind;
    atomic_int n_readers, n_writers; /* relaxed: they only tell, they must not order */
    atomic_int most_readers;
    struct guard guard; /* plain: written by writers, read by readers */
};

static void book_make(struct book *b, unsigned kind) {
    static const int glibc_kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
                                      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    b->kind = kind;
    if (kind == KIND_STATIC_WRITER) {
        b->lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
        return;
    }
    pthread_rwlockattr_t attr;
    OK(pthread_rwlockattr_init(&attr));
    if (kind == KIND_PSHARED)
        OK(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    else
        OK(pthread_rwlockattr_setkind_np(&attr, glibc_kinds[kind]));
    OK(pthread_rwlock_init(&b->lock, &attr));
    OK(pthread_rwlockattr_destroy(&attr));
}

/* The kinds that let a reader in again while a writer waits. */
static bool reads_nest(const struct book *b) {
    return b->kind < 2 || b->kind == KIND_PSHARED;
}

static void write_section(struct worker *w, struct book *b) {
    if (rwlock_write_any(w, &b->lock) != 0) {
        w->n[2]++;
        return;
    }
    CHECK_INT(atomic_fetch_add_explicit(&b->n_writers, 1, memory_order_relaxed), 0);
    CHECK_INT(atomic_load_explicit(&b->n_readers, memory_order_relaxed), 0);
    guard_section(&b->guard, w);
    if (!TSAN_OF_GLIBC && rng_chance(&w->rng, 5)) {
        AT("misuse by the writer");
        struct timespec soon = time_in_ns(CLOCK_REALTIME, 10000);
        CHECK_INT(pthread_rwlock_wrlock(&b->lock), EDEADLK);
        CHECK_INT(pthread_rwlock_rdlock(&b->lock), EDEADLK);
        CHECK_INT(pthread_rwlock_timedwrlock(&b->lock, &soon), EDEADLK);
        CHECK_INT(pthread_rwlock_timedrdlock(&b->lock, &soon), EDEADLK);
        CHECK_INT(pthread_rwlock_trywrlock(&b->lock), EBUSY);
        CHECK_INT(pthread_rwlock_tryrdlock(&b->lock), EBUSY);
    }
    CHECK_INT(atomic_load_explicit(&b->n_readers, memory_order_relaxed), 0);
    CHECK_INT(atomic_fetch_sub_explicit(&b->n_writers, 1, memory_order_relaxed), 1);
    AT("unlock, writer");
    OK(pthread_rwlock_unlock(&b->lock));
    w->n[0]++;
}

static void read_section(struct worker *w, struct book *b) {
    if (rwlock_read_any(w, &b->lock) != 0) {
        w->n[2]++;
        return;
    }
    int readers = atomic_fetch_add_explicit(&b->n_readers, 1, memory_order_relaxed) + 1;
    int most = atomic_load_explicit(&b->most_readers, memory_order_relaxed);
    if (readers > most)
        atomic_store_explicit(&b->most_readers, readers, memory_order_relaxed);
    CHECK_INT(atomic_load_explicit(&b->n_writers, memory_order_relaxed), 0);
    uint64_t before = b->guard.before;
    CHECK_INT(b->guard.after, before);
    think_cs(w);
    if (rng_chance(&w->rng, 10)) {
        AT("rdlock, nested");
        if (reads_nest(b)) {
            OK(pthread_rwlock_rdlock(&b->lock));
            OK(pthread_rwlock_unlock(&b->lock));
        } else if (!TSAN_OF_GLIBC) {
            CHECK_INT(pthread_rwlock_trywrlock(&b->lock), EBUSY);
        }
    }
    CHECK_INT(b->guard.before, before);
    CHECK_INT(b->guard.after, before);
    CHECK_INT(b->guard.owner, 0);
    CHECK_INT(atomic_load_explicit(&b->n_writers, memory_order_relaxed), 0);
    atomic_fetch_sub_explicit(&b->n_readers, 1, memory_order_relaxed);
    AT("unlock, reader");
    OK(pthread_rwlock_unlock(&b->lock));
    w->n[1]++;
}

static void book_body(struct worker *w) {
    struct book *books = w->shared;
    unsigned percent_writes = w->index % 4 == 0 ? 60 : 8;
    while (worker_more(w)) {
        struct book *b = &books[rng_below(&w->rng, 2)];
        if (rng_chance(&w->rng, percent_writes))
            write_section(w, b);
        else
            read_section(w, b);
        think(w);
        DID();
    }
}

static void rwlock_exclusion(struct run *run) {
    uint64_t total[4] = {0}, ops = run->ops / N_RWLOCK_KINDS;
    int most = 0;
    for (unsigned kind = 0; kind < N_RWLOCK_KINDS && !run->stop; kind++) {
        struct book books[2] = {0};
        uint64_t sums[4];
        run->ops = ops;
        book_make(&books[0], kind);
        book_make(&books[1], kind);
        team_whole(run, run->threads, book_body, books, sums);
        CHECK_INT(books[0].guard.after + books[1].guard.after, sums[0]);
        for (unsigned i = 0; i < 2; i++) {
            OK(pthread_rwlock_trywrlock(&books[i].lock)); /* free at the end */
            OK(pthread_rwlock_unlock(&books[i].lock));
            OK(pthread_rwlock_destroy(&books[i].lock));
            int readers = atomic_load_explicit(&books[i].most_readers, memory_order_relaxed);
            most = readers > most ? readers : most;
        }
        for (unsigned i = 0; i < 4; i++)
            total[i] += sums[i];
    }
    torture_note("%llu written, %llu read (up to %d at once), %llu attempts given up", (unsigned long long)total[0],
                 (unsigned long long)total[1], most, (unsigned long long)total[2]);
}

/* ---- rounds: after each no thread comes any more, so that a waiter left asleep is found out ---- */
struct rounds {
    struct meeting meeting;
    struct book book;
    uint64_t n;
};

static void rounds_body(struct worker *w) {
    struct rounds *r = w->shared;
    for (uint64_t round = 0; round < r->n; round++) {
        meeting_wait(&r->meeting);
        if (rng_chance(&w->rng, 30))
            busy(rng_below(&w->rng, 3000));
        for (unsigned i = rng_below(&w->rng, 3); i < 3; i++) {
            AT("the last of a round");
            if (rng_chance(&w->rng, 40))
                write_section(w, &r->book);
            else
                read_section(w, &r->book);
        }
        AT("end of a round");
        DID();
    }
}

static void rwlock_rounds(struct run *run) {
    uint64_t total[4] = {0};
    for (unsigned kind = 0; kind < KIND_PSHARED && !run->stop; kind++) {
        struct rounds r = {.n = run->ops / KIND_PSHARED};
        uint64_t sums[4];
        meeting_init(&r.meeting, run->threads);
        book_make(&r.book, kind);
        team_whole(run, run->threads, rounds_body, &r, sums);
        CHECK_INT(r.book.guard.after, sums[0]);
        OK(pthread_rwlock_destroy(&r.book.lock));
        for (unsigned i = 0; i < 4; i++)
            total[i] += sums[i];
    }
    torture_note("%llu rounds, %llu written, %llu read, no thread left asleep", (unsigned long long)run->ops,
                 (unsigned long long)total[0], (unsigned long long)total[1]);
}

/* ---- a writer that gives up must let in the readers that waited behind it, while the first reader stays inside ----
 */
struct way {
    struct meeting meeting;
    struct book book;
    unsigned n_readers;
    atomic_uint n_inside;
    uint64_t n;
};

static void way_body(struct worker *w) {
    struct way *way = w->shared;
    for (uint64_t round = 0; round < way->n; round++) {
        meeting_wait(&way->meeting);
        if (w->index == 0) {
            OK(pthread_rwlock_rdlock(&way->book.lock));
            meeting_wait(&way->meeting);
            AT("reader, inside until the others are");
            while (atomic_load_explicit(&way->n_inside, memory_order_relaxed) != way->n_readers)
                rest_ns(20000);
            OK(pthread_rwlock_unlock(&way->book.lock));
        } else if (w->index <= way->n_readers) {
            meeting_wait(&way->meeting);
            if (rng_chance(&w->rng, 80))
                rest_ns(rng_below(&w->rng, 100000)); /* often after a writer has queued */
            AT("rdlock behind writers that give up");
            OK(pthread_rwlock_rdlock(&way->book.lock));
            atomic_fetch_add_explicit(&way->n_inside, 1, memory_order_relaxed);
            OK(pthread_rwlock_unlock(&way->book.lock));
            w->n[0]++;
        } else {
            meeting_wait(&way->meeting);
            struct timespec soon = time_in_ns(CLOCK_REALTIME, rng_below(&w->rng, 200000));
            AT("timedwrlock that may give up");
            int error = pthread_rwlock_timedwrlock(&way->book.lock, &soon);
            CHECK(error == 0 || error == ETIMEDOUT);
            if (error == 0) { /* only once the first reader has left */
                CHECK_INT(atomic_load_explicit(&way->n_inside, memory_order_relaxed), way->n_readers);
                guard_section(&way->book.guard, w);
                OK(pthread_rwlock_unlock(&way->book.lock));
            } else {
                w->n[1]++;
            }
        }
        meeting_wait(&way->meeting);
        if (w->index == 0)
            atomic_store_explicit(&way->n_inside, 0, memory_order_relaxed);
        DID();
    }
}

static void rwlock_way(struct run *run) {
    uint64_t total[4] = {0};
    unsigned n = run->threads < 4 ? 4 : run->threads;
    for (unsigned kind = 0; kind < KIND_PSHARED && !run->stop; kind++) {
        struct way way = {.n = run->ops / KIND_PSHARED, .n_readers = n / 2};
        uint64_t sums[4];
        meeting_init(&way.meeting, n);
        book_make(&way.book, kind);
        team_whole(run, n, way_body, &way, sums);
        OK(pthread_rwlock_destroy(&way.book.lock));
        for (unsigned i = 0; i < 4; i++)
            total[i] += sums[i];
    }
    torture_note("%llu readers let in, %llu writers gave up", (unsigned long long)total[0],
                 (unsigned long long)total[1]);
}

const struct torture rwlock_tortures[] = {
    {"rwlock-exclusion", "a writer is alone, readers see whole data", rwlock_exclusion, 8, 40000, 0},
    {"rwlock-oversubscribed", "the same with more threads than cores", rwlock_exclusion, 64, 15000, 0},
    {"rwlock-rounds", "when no thread comes any more, none is left asleep", rwlock_rounds, 6, 4000, 0},
    {"rwlock-lets-others-in", "a writer that times out lets in the threads behind it", rwlock_way, 6, 800, 0},
    {0},
};
