/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Read-write locks: the three kinds, lock, trylock, unlock, init and destroy. Deadlines: rwlock_timed.c.
 * Source: POSIX.1-2017 pthread_rwlock_*; kinds and preference as in glibc 2.36, where PREFER_WRITER_NP behaves as
 * PREFER_READER_NP and only PREFER_WRITER_NONRECURSIVE_NP lets a waiting writer keep new readers out.
 */
#include "topic.h"

#include <signal.h>
#include <string.h>

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int readers_in, writers_in, entered, go;
static long plain;

static const int all_kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
                                PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
#define EACH_KIND(i) (size_t i = 0; i < sizeof all_kinds / sizeof *all_kinds; i++)

static void init_kind(int kind) {
    pthread_rwlockattr_t attr;
    OK(pthread_rwlockattr_init(&attr));
    OK(pthread_rwlockattr_setkind_np(&attr, kind));
    OK(pthread_rwlock_init(&rw, &attr));
    OK(pthread_rwlockattr_destroy(&attr));
}
static void *do_tryrdlock(void *unused) {
    (void)unused;
    int rc = pthread_rwlock_tryrdlock(&rw);
    if (rc == 0)
        OK(pthread_rwlock_unlock(&rw));
    return (void *)(long)rc;
}
static void *do_trywrlock(void *unused) {
    (void)unused;
    int rc = pthread_rwlock_trywrlock(&rw);
    if (rc == 0)
        OK(pthread_rwlock_unlock(&rw));
    return (void *)(long)rc;
}
static void *do_unlock(void *unused) {
    (void)unused;
    return (void *)(long)pthread_rwlock_unlock(&rw);
}
/* What another thread gets from a try for reading and for writing. */
#define CHECK_OTHERS(may_read, may_write)                                                                              \
    do {                                                                                                               \
        CHECK_RC((int)(long)thread_join(thread_start(do_tryrdlock, NULL)), (may_read) ? 0 : EBUSY);                    \
        CHECK_RC((int)(long)thread_join(thread_start(do_trywrlock, NULL)), (may_write) ? 0 : EBUSY);                   \
    } while (0)

static void *read_once(void *unused) {
    (void)unused;
    OK(pthread_rwlock_rdlock(&rw));
    atomic_fetch_add(&entered, 1);
    OK(pthread_rwlock_unlock(&rw));
    return NULL;
}
static void *write_once(void *unused) {
    (void)unused;
    OK(pthread_rwlock_wrlock(&rw));
    atomic_fetch_add(&entered, 1);
    OK(pthread_rwlock_unlock(&rw));
    return NULL;
}
static void join_all(pthread_t *threads, int n) {
    for (int i = 0; i < n; i++)
        thread_join(threads[i]);
}

TEST(rwlock_rdlock__readers_share, "each kind: with one reader inside others may read and not write") {
    for
        EACH_KIND(i) {
            init_kind(all_kinds[i]);
            OK(pthread_rwlock_rdlock(&rw));
            CHECK_OTHERS(true, false);
            OK(pthread_rwlock_unlock(&rw));
            CHECK_OTHERS(true, true);
            OK(pthread_rwlock_destroy(&rw));
        }
}
static void *read_until_all_in(void *unused) {
    (void)unused;
    OK(pthread_rwlock_rdlock(&rw));
    atomic_fetch_add(&readers_in, 1);
    await(&readers_in, 16);
    OK(pthread_rwlock_unlock(&rw));
    return NULL;
}
TEST(rwlock_rdlock__many_at_once, "16 readers are inside at the same time") {
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        threads[i] = thread_start(read_until_all_in, NULL);
    join_all(threads, 16);
    CHECK_OTHERS(true, true);
}
TEST(rwlock_rdlock__same_thread_twice, "a thread may hold several read locks; it is free after as many unlocks") {
    for
        EACH_KIND(i) {
            init_kind(all_kinds[i]);
            for (int k = 0; k < 5; k++)
                OK(pthread_rwlock_rdlock(&rw));
            for (int k = 0; k < 5; k++) {
                CHECK_OTHERS(true, false);
                OK(pthread_rwlock_unlock(&rw));
            }
            CHECK_OTHERS(true, true);
        }
}
TEST(rwlock_wrlock__excludes_all, "each kind: with a writer inside no thread may read or write") {
    for
        EACH_KIND(i) {
            init_kind(all_kinds[i]);
            OK(pthread_rwlock_wrlock(&rw));
            CHECK_OTHERS(false, false);
            OK(pthread_rwlock_unlock(&rw));
            CHECK_OTHERS(true, true);
        }
}
TEST(rwlock_wrlock__blocks_while_a_reader_is_in, "each kind: a writer stays out until the last of 2 readers leaves") {
    for
        EACH_KIND(i) {
            init_kind(all_kinds[i]);
            atomic_store(&entered, 0);
            OK(pthread_rwlock_rdlock(&rw));
            OK(pthread_rwlock_rdlock(&rw));
            pthread_t writer = thread_start(write_once, NULL);
            let_threads_block();
            OK(pthread_rwlock_unlock(&rw));
            let_threads_block();
            CHECK_INT(atomic_load(&entered), 0);
            OK(pthread_rwlock_unlock(&rw));
            thread_join(writer);
            CHECK_INT(atomic_load(&entered), 1);
        }
}
TEST(rwlock_rdlock__blocks_while_a_writer_is_in,
     "each kind: 8 readers stay out until the writer leaves, then all enter") {
    for
        EACH_KIND(i) {
            pthread_t readers[8];
            init_kind(all_kinds[i]);
            atomic_store(&entered, 0);
            OK(pthread_rwlock_wrlock(&rw));
            for (int k = 0; k < 8; k++)
                readers[k] = thread_start(read_once, NULL);
            let_threads_block();
            CHECK_INT(atomic_load(&entered), 0);
            OK(pthread_rwlock_unlock(&rw));
            join_all(readers, 8);
            CHECK_INT(atomic_load(&entered), 8);
        }
}
TEST(rwlock_unlock__waiting_readers_and_writers_all_get_in, "each kind: 6 readers and 6 writers wait for a writer; all "
                                                            "get the lock") {
    for
        EACH_KIND(i) {
            pthread_t threads[12];
            init_kind(all_kinds[i]);
            atomic_store(&entered, 0);
            OK(pthread_rwlock_wrlock(&rw));
            for (int k = 0; k < 12; k++)
                threads[k] = thread_start(k % 2 == 0 ? read_once : write_once, NULL);
            let_threads_block();
            OK(pthread_rwlock_unlock(&rw));
            join_all(threads, 12);
            CHECK_INT(atomic_load(&entered), 12);
            CHECK_OTHERS(true, true);
        }
}

static atomic_int absent;
static void *read_and_write(void *argument) {
    unsigned seed = (unsigned)(long)argument;
    begin_together(&absent);
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1103515245 + 12345;
        bool write = seed >> 16 & 1, try = (seed >> 17 & 3) == 0;
        int rc = 0;
        if (try)
            rc = write ? pthread_rwlock_trywrlock(&rw) : pthread_rwlock_tryrdlock(&rw);
        else
            OK(write ? pthread_rwlock_wrlock(&rw) : pthread_rwlock_rdlock(&rw));
        if (rc != 0) {
            CHECK_RC(rc, EBUSY);
            continue;
        }
        if (write) {
            CHECK_INT(atomic_fetch_add(&writers_in, 1), 0);
            CHECK_INT(atomic_load(&readers_in), 0);
            plain++;
            atomic_fetch_add(&entered, 1);
            let_others_in(i);
            atomic_fetch_sub(&writers_in, 1);
        } else {
            atomic_fetch_add(&readers_in, 1);
            let_others_in(i);
            CHECK_INT(atomic_load(&writers_in), 0);
            atomic_fetch_sub(&readers_in, 1);
        }
        OK(pthread_rwlock_unlock(&rw));
    }
    return NULL;
}
static void excludes(int kind) {
    pthread_t threads[8];
    init_kind(kind);
    atomic_store(&absent, 8);
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(read_and_write, (void *)(long)(i + 1));
    join_all(threads, 8);
    CHECK_INT(plain, atomic_load(&entered));
    CHECK_OTHERS(true, true);
}
TEST(rwlock__reader_preference_excludes, "8 threads, 3000 mixed locks each: a writer is always alone (PREFER_READER)") {
    excludes(PTHREAD_RWLOCK_PREFER_READER_NP);
}
TEST(rwlock__writer_preference_excludes, "8 threads, 3000 mixed locks each: a writer is always alone (PREFER_WRITER)") {
    excludes(PTHREAD_RWLOCK_PREFER_WRITER_NP);
}
TEST(rwlock__writer_nonrecursive_excludes, "8 threads, 3000 mixed locks each: a writer is always alone "
                                           "(PREFER_WRITER_NONRECURSIVE)") {
    excludes(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
}

/* --- preference --------------------------------------------------------------------------------------------------- */
/* A reader is in, a writer waits: may the same thread, and another one, read? */
static void reads_past_waiting_writer(int kind, bool may) {
    init_kind(kind);
    OK(pthread_rwlock_rdlock(&rw));
    pthread_t writer = thread_start(write_once, NULL);
    /* The writer has no way to say that it waits; with writer preference its wait shows as EBUSY. */
    for (int i = 0; i < 5 || (!may && pthread_rwlock_tryrdlock(&rw) == 0 && pthread_rwlock_unlock(&rw) == 0); i++)
        let_threads_block();
    CHECK_RC(pthread_rwlock_tryrdlock(&rw), may ? 0 : EBUSY);
    CHECK_RC((int)(long)thread_join(thread_start(do_tryrdlock, NULL)), may ? 0 : EBUSY);
    if (may) {
        OK(pthread_rwlock_rdlock(&rw));
        OK(pthread_rwlock_unlock(&rw));
        OK(pthread_rwlock_unlock(&rw));
    }
    CHECK_INT(atomic_load(&entered), 0);
    OK(pthread_rwlock_unlock(&rw));
    thread_join(writer);
    CHECK_OTHERS(true, true);
}
TEST(rwlock_rdlock__prefer_reader_passes_waiting_writer, "PREFER_READER: readers enter although a writer waits") {
    reads_past_waiting_writer(PTHREAD_RWLOCK_PREFER_READER_NP, true);
}
TEST(rwlock_rdlock__prefer_writer_np_passes_waiting_writer, "PREFER_WRITER_NP: readers enter although a writer waits "
                                                            "(glibc)") {
    reads_past_waiting_writer(PTHREAD_RWLOCK_PREFER_WRITER_NP, true);
}
TEST(rwlock_tryrdlock__writer_nonrecursive_yields_to_waiting_writer, "PREFER_WRITER_NONRECURSIVE: tryrdlock is EBUSY "
                                                                     "while a writer waits") {
    reads_past_waiting_writer(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, false);
}
static void *churn_read(void *unused) {
    (void)unused;
    while (atomic_load(&go) == 0) {
        OK(pthread_rwlock_rdlock(&rw));
        OK(pthread_rwlock_unlock(&rw));
    }
    return NULL;
}
TEST(rwlock_wrlock__writer_nonrecursive_is_not_starved, "PREFER_WRITER_NONRECURSIVE: 50 write locks against 6 readers "
                                                        "that never pause") {
    pthread_t readers[6];
    init_kind(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    for (int i = 0; i < 6; i++)
        readers[i] = thread_start(churn_read, NULL);
    for (int i = 0; i < 50; i++)
        write_once(NULL);
    atomic_store(&go, 1);
    join_all(readers, 6);
    CHECK_INT(atomic_load(&entered), 50);
}

/*
 * One reader sleeps, a writer is about to wait, the lock is unlocked, and another reader is in before the writer has
 * seen that: the first reader may come in beside it, though it is the writer that was about to look.
 */
enum { MEETINGS = 200 };
static atomic_int meeting, met, writer_done, reader_done;
static void *meet_as_reader(void *unused) {
    (void)unused;
    for (int i = 1; i <= rounds(MEETINGS); i++) {
        await(&meeting, 2 * i - 1);
        OK(pthread_rwlock_rdlock(&rw));
        atomic_fetch_add(&met, 1);
        await(&met, 2 * i);
        OK(pthread_rwlock_unlock(&rw));
        atomic_store(&reader_done, i);
    }
    return NULL;
}
static void *write_meanwhile(void *unused) {
    (void)unused;
    for (int i = 1; i <= rounds(MEETINGS); i++) {
        while (atomic_load(&meeting) < 2 * i)
            sched_yield(); /* an engine with turns passes this one on */
        OK(pthread_rwlock_wrlock(&rw));
        OK(pthread_rwlock_unlock(&rw));
        atomic_store(&writer_done, i);
    }
    return NULL;
}
static void meet_while_a_writer_waits(int kind) {
    init_kind(kind);
    pthread_t reader = thread_start(meet_as_reader, NULL), writer = thread_start(write_meanwhile, NULL);
    for (int i = 1; i <= rounds(MEETINGS); i++) {
        OK(pthread_rwlock_wrlock(&rw));
        atomic_store(&meeting, 2 * i - 1);
        sleep_ms(2); /* the reader sleeps */
        atomic_store(&meeting, 2 * i);
        for (volatile int delay = i % 20 * 400; delay > 0; delay--)
            ;
        OK(pthread_rwlock_unlock(&rw));
        OK(pthread_rwlock_rdlock(&rw));
        atomic_fetch_add(&met, 1);
        await(&met, 2 * i);
        OK(pthread_rwlock_unlock(&rw));
        await(&reader_done, i);
        await(&writer_done, i);
    }
    thread_join(reader);
    thread_join(writer);
}
TEST(rwlock_rdlock__readers_meet_while_a_writer_waits,
     "200 times two readers inside wait for each other (PREFER_READER)") {
    meet_while_a_writer_waits(PTHREAD_RWLOCK_PREFER_READER_NP);
}
TEST(rwlock_rdlock__readers_meet_prefer_writer_np, "the same (PREFER_WRITER_NP)") {
    meet_while_a_writer_waits(PTHREAD_RWLOCK_PREFER_WRITER_NP);
}

/* --- deadlocks that are reported ---------------------------------------------------------------------------------- */
TEST(rwlock_rdlock__own_write_lock_returns_EDEADLK, "rdlock by the writer itself: EDEADLK, still held for writing") {
    OK(pthread_rwlock_wrlock(&rw));
    CHECK_RC(pthread_rwlock_rdlock(&rw), EDEADLK);
    CHECK_OTHERS(false, false);
    OK(pthread_rwlock_unlock(&rw));
    CHECK_OTHERS(true, true);
}
TEST(rwlock_wrlock__own_write_lock_returns_EDEADLK, "wrlock by the writer itself: EDEADLK, still held once") {
    OK(pthread_rwlock_wrlock(&rw));
    CHECK_RC(pthread_rwlock_wrlock(&rw), EDEADLK);
    CHECK_OTHERS(false, false);
    OK(pthread_rwlock_unlock(&rw));
    CHECK_OTHERS(true, true);
}
TEST(rwlock_tryrdlock__own_write_lock_returns_EBUSY, "tryrdlock by the writer itself: EBUSY") {
    OK(pthread_rwlock_wrlock(&rw));
    CHECK_RC(pthread_rwlock_tryrdlock(&rw), EBUSY);
    OK(pthread_rwlock_unlock(&rw));
}
TEST(rwlock_trywrlock__own_write_lock_returns_EBUSY, "trywrlock by the writer itself: EBUSY") {
    OK(pthread_rwlock_wrlock(&rw));
    CHECK_RC(pthread_rwlock_trywrlock(&rw), EBUSY);
    OK(pthread_rwlock_unlock(&rw));
}
TEST(rwlock_trywrlock__own_read_lock_returns_EBUSY, "trywrlock by the only reader: EBUSY, no upgrade") {
    OK(pthread_rwlock_rdlock(&rw));
    CHECK_RC(pthread_rwlock_trywrlock(&rw), EBUSY);
    OK(pthread_rwlock_unlock(&rw));
    OK(pthread_rwlock_trywrlock(&rw));
}

/* --- unlock, init, destroy ---------------------------------------------------------------------------------------- */
TEST(rwlock_unlock__read_lock_by_another_thread, "a read lock given back by another thread frees the lock (glibc)") {
    OK(pthread_rwlock_rdlock(&rw));
    OK((int)(long)thread_join(thread_start(do_unlock, NULL)));
    OK(pthread_rwlock_trywrlock(&rw));
}
TEST(rwlock_init__is_free, "init over zeros and over ones, NULL attributes: free") {
    for (int fill = 0; fill <= 0xff; fill += 0xff) {
        memset(&rw, fill, sizeof rw);
        OK(pthread_rwlock_init(&rw, NULL));
        CHECK_OTHERS(true, true);
        OK(pthread_rwlock_destroy(&rw));
    }
}
TEST(rwlock_initializer__default, "PTHREAD_RWLOCK_INITIALIZER: reads share, write excludes, without init") {
    CHECK_OTHERS(true, true);
    OK(pthread_rwlock_rdlock(&rw));
    CHECK_OTHERS(true, false);
    OK(pthread_rwlock_unlock(&rw));
    OK(pthread_rwlock_wrlock(&rw));
    CHECK_OTHERS(false, false);
}
TEST(rwlock_initializer__writer_nonrecursive_np, "the _NP initialiser gives the writer-preferring kind without init") {
    static const pthread_rwlock_t initial = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    memcpy(&rw, &initial, sizeof rw);
    OK(pthread_rwlock_rdlock(&rw));
    pthread_t writer = thread_start(write_once, NULL);
    while (pthread_rwlock_tryrdlock(&rw) == 0) {
        OK(pthread_rwlock_unlock(&rw));
        let_threads_block();
    }
    CHECK_INT(atomic_load(&entered), 0);
    OK(pthread_rwlock_unlock(&rw));
    thread_join(writer);
}
TEST(rwlock_destroy__then_init_again, "destroy of used and unused locks: 0, and a second init gives a free lock") {
    for
        EACH_KIND(i) {
            init_kind(all_kinds[i]);
            OK(pthread_rwlock_destroy(&rw));
            init_kind(all_kinds[i]);
            write_once(NULL);
            read_once(NULL);
            OK(pthread_rwlock_destroy(&rw));
            init_kind(all_kinds[i]);
            CHECK_OTHERS(true, true);
        }
}
/* The first section of each writer lasts until the other one has come: if nothing keeps it out, it is inside too. */
static void *write_often(void *unused) {
    (void)unused;
    begin_together(&absent);
    atomic_fetch_add(&go, 1);
    for (int i = 0; i < 20000; i++) {
        OK(pthread_rwlock_wrlock(&rw));
        CHECK_INT(atomic_fetch_add(&writers_in, 1), 0);
        CHECK_INT(atomic_load(&readers_in), 0);
        plain++;
        if (i == 0) {
            await(&go, 2);
            let_threads_block();
        }
        let_others_in(i);
        atomic_fetch_sub(&writers_in, 1);
        OK(pthread_rwlock_unlock(&rw));
    }
    return NULL;
}
TEST(rwlock_unlock__makes_writes_visible, "two writers, 20000 sections each: no update lost") {
    atomic_store(&absent, 2);
    pthread_t other = thread_start(write_often, NULL);
    write_often(NULL);
    thread_join(other);
    CHECK_INT(plain, 40000);
}
TEST(rwlock_lock__never_returns_EINTR, "a reader and a writer hit by 20 signals each go on waiting and get the lock") {
    signal_counter(SIGUSR1, false);
    OK(pthread_rwlock_wrlock(&rw));
    pthread_t reader = thread_start(read_once, NULL), writer = thread_start(write_once, NULL);
    let_threads_block();
    signal_thread(reader, SIGUSR1, 20);
    signal_thread(writer, SIGUSR1, 20);
    CHECK_INT(atomic_load(&entered), 0);
    OK(pthread_rwlock_unlock(&rw));
    thread_join(reader);
    thread_join(writer);
    CHECK_INT(atomic_load(&entered), 2);
}
