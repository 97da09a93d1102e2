/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * contend WHAT [THREADS] [ROUNDS]: more threads than the hardware has elements for, on one object.
 *
 *   mutex     lock, trylock and timed lock
 *   cond      waits, timed waits and cancelled waits for turns that one thread gives
 *   tokens    every wake-up takes a token that a signal brought; not one may be lost
 *   barrier   as many threads as the barrier has places
 *   mixed     all of these at once
 */
#include "subject.h"

static unsigned n_threads, n_rounds;

/* ---- mutex ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct inside inside;
static atomic_ulong n_locked;

static void *lock(void *which) {
    unsigned kind = (unsigned)(uintptr_t)which % 3;
    for (unsigned i = 0; i < n_rounds; i++) {
        int r = 0;
        if (kind == 0) {
            OK(pthread_mutex_lock(&mutex));
        } else if (kind == 1) {
            struct timespec at = time_in_us(CLOCK_REALTIME, i % 64 * 20);
            r = pthread_mutex_timedlock(&mutex, &at);
            CHECK(r == 0 || r == ETIMEDOUT);
        } else {
            r = pthread_mutex_trylock(&mutex);
            CHECK(r == 0 || r == EBUSY);
        }
        if (r != 0)
            continue;
        go_in(&inside);
        atomic_fetch_add_explicit(&n_locked, 1, memory_order_relaxed);
        if (i % 8 == 0)
            sched_yield(); /* let the others come */
        go_out(&inside);
        OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

static void mutex_test(void) {
    run_threads(n_threads, lock);
    CHECK(inside.entered == n_locked);
}

/* ---- condition ---- */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static struct inside guarded;
static unsigned now; /* the turn, under guard */
static bool over;

static void let_go(void *unused) {
    (void)unused;
    go_in(&guarded); /* a cancelled wait holds the mutex again */
    go_out(&guarded);
    OK(pthread_mutex_unlock(&guard));
}

static void wait_for_turns(bool timed) {
    unsigned seen = 0;
    while (!over) {
        struct timespec at = time_in_us(CLOCK_REALTIME, 300);
        int r = timed ? pthread_cond_timedwait(&turn, &guard, &at) : pthread_cond_wait(&turn, &guard);
        CHECK(r == 0 || (timed && r == ETIMEDOUT));
        go_in(&guarded);
        CHECK(now - seen <= n_rounds);
        seen = now;
        go_out(&guarded);
    }
}

static void *wait(void *which) {
    OK(pthread_mutex_lock(&guard));
    pthread_cleanup_push(let_go, NULL);
    wait_for_turns((uintptr_t)which % 2 != 0);
    pthread_cleanup_pop(1);
    return NULL;
}

static void cond_test(void) {
    pthread_t threads[1024];
    for (unsigned i = 0; i < n_threads; i++)
        threads[i] = start(wait, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < n_rounds; i++) {
        OK(pthread_mutex_lock(&guard));
        go_in(&guarded);
        now++;
        go_out(&guarded);
        if (i % 4 == 0)
            OK(pthread_cond_broadcast(&turn));
        OK(pthread_mutex_unlock(&guard));
        OK(pthread_cond_signal(&turn));
        if (i % 8 == 0) {
            pthread_t *one = &threads[i / 8 % n_threads];
            OK(pthread_cancel(*one));
            thread_join_cancelled(*one);
            *one = start(wait, (void *)(uintptr_t)(i / 8 % n_threads));
        }
    }
    OK(pthread_mutex_lock(&guard));
    over = true;
    OK(pthread_mutex_unlock(&guard));
    OK(pthread_cond_broadcast(&turn));
    for (unsigned i = 0; i < n_threads; i++)
        thread_join(threads[i]);
}

/* ---- tokens ---- */

static pthread_mutex_t purse = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static unsigned n_tokens, n_taken, n_wanted;

static void *take(void *unused) {
    (void)unused;
    for (;;) {
        OK(pthread_mutex_lock(&purse));
        while (n_tokens == 0 && n_taken < n_wanted)
            OK(pthread_cond_wait(&more, &purse));
        if (n_taken == n_wanted) {
            OK(pthread_mutex_unlock(&purse));
            return NULL;
        }
        n_tokens--;
        if (++n_taken == n_wanted)
            OK(pthread_cond_broadcast(&more));
        OK(pthread_mutex_unlock(&purse));
    }
}

static void *give(void *which) {
    for (unsigned i = 0; i < n_rounds; i++) {
        OK(pthread_mutex_lock(&purse));
        n_tokens++;
        if ((uintptr_t)which % 2 == 0) {
            OK(pthread_cond_signal(&more));
            OK(pthread_mutex_unlock(&purse));
        } else {
            OK(pthread_mutex_unlock(&purse));
            OK(pthread_cond_signal(&more));
        }
    }
    return NULL;
}

static void *give_or_take(void *which) {
    return (uintptr_t)which < 2 ? give(which) : take(NULL);
}

static void token_test(void) {
    n_wanted = 2 * n_rounds;
    run_threads(n_threads, give_or_take);
    CHECK(n_taken == n_wanted && n_tokens == 0);
}

/* ---- barrier ---- */

static pthread_barrier_t barrier;
static atomic_uint n_arrived, n_serial;

static void *meet(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < n_rounds; i++) {
        atomic_fetch_add(&n_arrived, 1);
        int r = pthread_barrier_wait(&barrier);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        atomic_fetch_add(&n_serial, r != 0);
        unsigned n = atomic_load(&n_arrived);
        CHECK(n >= (i + 1) * n_threads && n < (i + 2) * n_threads);
    }
    return NULL;
}

static void barrier_test(void) {
    OK(pthread_barrier_init(&barrier, NULL, n_threads));
    run_threads(n_threads, meet);
    CHECK(n_serial == n_rounds && n_arrived == n_rounds * n_threads);
    OK(pthread_barrier_destroy(&barrier));
}

/* ---- all ---- */

static void *one_of_them(void *which) {
    static void (*const tests[])(void) = {mutex_test, cond_test, token_test, barrier_test};
    tests[(uintptr_t)which]();
    return NULL;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"mutex", "cond", "tokens", "barrier"};
    const char *what = argc > 1 ? argv[1] : "mixed";
    n_threads = argument(argc, argv, 2, 32);
    n_rounds = argument(argc, argv, 3, 200);
    CHECK(n_threads >= 3 && n_threads <= 1000);
    for (uintptr_t i = 0; i < 4; i++)
        if (strcmp(what, names[i]) == 0) {
            one_of_them((void *)i);
            return 0;
        }
    CHECK(strcmp(what, "mixed") == 0);
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) /* with whole stacks: they have arrays of threads */
        OK(pthread_create(&threads[i], NULL, one_of_them, (void *)i));
    for (uintptr_t i = 0; i < 4; i++)
        thread_join(threads[i]);
    return 0;
}
