/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See torture.h. Slots hold what each live thread does; a thread that ends adds its counts to those of the ended ones.
 * A slot is written by its owner only and read by the watchdog: relaxed is enough, the report is a hint.
 */
#include "torture.h"

#include "slots.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct slot torture_slots[MAX_THREADS];
_Atomic uint64_t torture_ended;
static _Atomic uint64_t checks_of_ended;
static struct slot spare_slot; /* for a thread that has no slot (any more): TSD destructors */
static _Thread_local struct slot *my_slot;
static atomic_uint n_failures;

#if HAVE_ASAN
/*
 * Instead of the sanitizer's own: it works on a stack that the unwinding of a cancellation has left poisoned, and
 * reports itself. A generous piece of the stack around the caller is clean afterwards; only red zones are lost by that.
 */
void __asan_unpoison_memory_region(const volatile void *address, size_t size);
void __asan_handle_no_return(void);

__attribute__((noinline, no_sanitize("address"))) void __asan_handle_no_return(void) {
    char *here = __builtin_frame_address(0);
    __asan_unpoison_memory_region(here - 65536, 2 * 65536);
}
#endif

/* ---- random numbers ---- */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void rng_seed(struct rng *rng, uint64_t seed, uint64_t stream) {
    rng->state = mix(mix(seed + 0x9e3779b97f4a7c15u) + stream * 0x9e3779b97f4a7c15u) | 1;
}

uint64_t rng_next(struct rng *rng) {
    uint64_t x = rng->state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    rng->state = x;
    return x * 0x2545f4914f6cdd1du;
}

unsigned rng_below(struct rng *rng, unsigned n) {
    return (unsigned)((rng_next(rng) >> 32) * n >> 32);
}

bool rng_chance(struct rng *rng, unsigned percent) {
    return rng_below(rng, 100) < percent;
}

/* ---- slots ---- */
static struct slot *slot_of_me(void) {
    return my_slot != NULL ? my_slot : &spare_slot;
}

static void add(_Atomic uint64_t *counter, uint64_t n) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

void torture_at(const char *where) {
    atomic_store_explicit(&slot_of_me()->last, where, memory_order_relaxed);
}

void torture_did(uint64_t n) {
    add(&slot_of_me()->progress, n);
}

void torture_enter(void) {
    static atomic_uint hint;
    for (;;) {
        for (unsigned i = 0; i < MAX_THREADS; i++) {
            unsigned at = atomic_fetch_add_explicit(&hint, 1, memory_order_relaxed) % MAX_THREADS;
            struct slot *slot = &torture_slots[at];
            int unused = 0;
            if (atomic_compare_exchange_strong_explicit(&slot->tid, &unused, (int)syscall(SYS_gettid),
                                                        memory_order_relaxed, memory_order_relaxed)) {
                my_slot = slot;
                torture_at("started");
                return;
            }
        }
        sched_yield();
    }
}

void torture_leave(void) {
    struct slot *slot = my_slot;
    if (slot == NULL)
        return;
    my_slot = NULL;
    atomic_fetch_add_explicit(&torture_ended, atomic_exchange_explicit(&slot->progress, 0, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&checks_of_ended, checks_of_thread, memory_order_relaxed);
    checks_of_thread = 0;
    atomic_store_explicit(&slot->tid, 0, memory_order_relaxed);
}

void torture_forked(void) {
    for (unsigned i = 0; i < MAX_THREADS; i++)
        if (&torture_slots[i] != my_slot)
            atomic_store_explicit(&torture_slots[i].tid, 0, memory_order_relaxed);
    if (my_slot != NULL)
        atomic_store_explicit(&my_slot->tid, (int)syscall(SYS_gettid), memory_order_relaxed);
    atomic_store(&n_failures, 0);
}

/* ---- checks ---- */
/* Is it the first failure of the check at this place? Later ones of places beyond MAX_PLACES are taken for no first. */
static bool is_first_at(const char *file, int line) {
    enum { MAX_PLACES = 64 };
    static atomic_uintptr_t places[MAX_PLACES]; /* in all tortures */
    const uintptr_t place = (uintptr_t)file * 4096 + (uintptr_t)line;
    for (unsigned i = 0; i < MAX_PLACES; i++) {
        uintptr_t none = 0;
        if (atomic_load(&places[i]) == place)
            return false;
        if (atomic_compare_exchange_strong(&places[i], &none, place))
            return true;
        if (none == place)
            return false;
    }
    return false;
}

/* Counted, and the torture goes on; in the words of the first twenty, and of the first of each check. */
void check_failed(const char *file, int line, const char *text) {
    bool first = is_first_at(file, line);
    if (atomic_fetch_add_explicit(&n_failures, 1, memory_order_relaxed) < 20 || first)
        dprintf(STDOUT_FILENO, "# FAILED %s:%d (%s, seed %llu, thread %d): %s\n", file, line, torture_now_name(),
                (unsigned long long)torture_now_seed(), (int)syscall(SYS_gettid), text);
    if (torture_fatal)
        torture_hung(getpid(), "failed check");
}

void torture_note(const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(STDOUT_FILENO, "#   %s\n", text);
}

unsigned torture_failures(void) {
    return atomic_load_explicit(&n_failures, memory_order_relaxed);
}

uint64_t torture_checks(void) {
    return atomic_load_explicit(&checks_of_ended, memory_order_relaxed) + checks_of_thread;
}

/* ---- threads ---- */
void thread_attr_small(pthread_attr_t *attr) {
    OK(pthread_attr_init(attr));
    OK(pthread_attr_setstacksize(attr, HAVE_TSAN || HAVE_ASAN ? 1024 * 1024 : 192 * 1024));
}

static void worker_left(void *argument) {
    struct worker *w = argument;
    torture_leave();
    atomic_store_explicit(&w->running, false, memory_order_relaxed);
}

static void *worker_main(void *argument) {
    struct worker *w = argument;
    torture_enter();
    atomic_store_explicit(&w->tid, (int)syscall(SYS_gettid), memory_order_relaxed);
    pthread_cleanup_push(worker_left, w);
    w->body(w);
    pthread_cleanup_pop(1);
    return NULL;
}

void worker_start(struct worker *w) {
    pthread_attr_t attr;
    thread_attr_small(&attr);
    atomic_store_explicit(&w->tid, 0, memory_order_relaxed);
    atomic_store_explicit(&w->running, true, memory_order_relaxed);
    w->id = thread_start_with(&attr, worker_main, w);
    OK(pthread_attr_destroy(&attr));
}

void *worker_join(struct worker *w) {
    return thread_join(w->id);
}

bool worker_more(struct worker *w) {
    if (w->left == 0 || atomic_load_explicit(&w->run->stop, memory_order_relaxed))
        return false;
    w->left--;
    return true;
}

void team_start(struct team *team, struct run *run, unsigned n, void (*body)(struct worker *), void *shared) {
    static atomic_uint n_teams; /* each team draws other numbers */
    uint64_t stream = (uint64_t)atomic_fetch_add_explicit(&n_teams, 1, memory_order_relaxed) << 20;
    team->n = n;
    team->run = run;
    team->workers = calloc(n, sizeof *team->workers);
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = &team->workers[i];
        w->index = i;
        w->left = run->ops / n + 1;
        w->run = run;
        w->shared = shared;
        w->body = body;
        rng_seed(&w->rng, run->seed, stream + i);
    }
    for (unsigned i = 0; i < n; i++)
        worker_start(&team->workers[i]);
}

void team_join(struct team *team) {
    for (unsigned i = 0; i < team->n; i++) {
        AT("join");
        worker_join(&team->workers[i]);
        DID();
    }
}

uint64_t team_sum(const struct team *team, unsigned count) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < team->n; i++)
        sum += team->workers[i].n[count];
    return sum;
}

void team_free(struct team *team) {
    free(team->workers);
    team->workers = NULL;
}

void team_whole(struct run *run, unsigned n, void (*body)(struct worker *), void *shared, uint64_t *sums) {
    struct team team;
    team_start(&team, run, n, body, shared);
    team_join(&team);
    for (unsigned i = 0; sums != NULL && i < 4; i++)
        sums[i] = team_sum(&team, i);
    team_free(&team);
}

/* ---- time ---- */
void busy(unsigned turns) {
    for (unsigned i = 0; i < turns; i++)
        atomic_signal_fence(memory_order_seq_cst);
}

void think(struct worker *w) {
    unsigned r = rng_below(&w->rng, 256);
    if (r == 0)
        rest_ns(1000 + rng_below(&w->rng, 100000));
    else if (r < 24)
        sched_yield();
    else if (r < 128)
        busy(rng_below(&w->rng, 500));
}

void think_cs(struct worker *w) {
    unsigned r = rng_below(&w->rng, 512);
    if (r == 0)
        rest_ns(1000 + rng_below(&w->rng, 50000));
    else if (r < 24)
        sched_yield();
    else if (r < 256)
        busy(rng_below(&w->rng, 300));
}

enum reach random_deadline(struct worker *w, clockid_t clock, struct timespec *deadline) {
    unsigned r = rng_below(&w->rng, 8);
    if (r == 0) {
        *deadline = time_in_ns(clock, 0);
        /* CLOCK_MONOTONIC begins with the machine, and futex(2) refuses negative times. */
        time_t ago = (time_t)(1 + rng_below(&w->rng, 1000));
        deadline->tv_sec -= ago < deadline->tv_sec ? ago : deadline->tv_sec;
        return REACH_PAST;
    }
    if (r < 5) {
        *deadline = time_in_ns(clock, rng_below(&w->rng, 150000));
        return REACH_SHORT;
    }
    *deadline = time_in_ns(clock, FAR_NS);
    return REACH_FAR;
}

/* ---- meeting ---- */
void meeting_init(struct meeting *meeting, unsigned n) {
    atomic_init(&meeting->arrived, 0);
    atomic_init(&meeting->round, 0);
    meeting->n = n;
}

#ifdef SBT_PREFIX
static bool keeps_order(void) {
    const char *engine = getenv("SUBUTAI_ENGINE");
    return engine != NULL && strcmp(engine, "det") == 0;
}

/* A timed wait for what never comes. */
static void wait_ns(int64_t ns) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec end = time_in_ns(CLOCK_REALTIME, ns);
    OK(pthread_mutex_lock(&mutex));
    while (pthread_cond_timedwait(&cond, &mutex, &end) != ETIMEDOUT)
        ;
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_cond_destroy(&cond));
    OK(pthread_mutex_destroy(&mutex));
}
#endif

void rest_ns(int64_t ns) {
#ifdef SBT_PREFIX
    if (keeps_order()) {
        wait_ns(ns);
        return;
    }
#endif
    sleep_ns(ns);
}

void meeting_wait(struct meeting *meeting) {
    unsigned round = atomic_load_explicit(&meeting->round, memory_order_acquire);
    /* acq_rel: the last to arrive has seen what all the others did, and its store below passes that on. */
    if (atomic_fetch_add_explicit(&meeting->arrived, 1, memory_order_acq_rel) + 1 == meeting->n) {
        atomic_store_explicit(&meeting->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&meeting->round, round + 1, memory_order_release);
        return;
    }
    for (unsigned i = 0; atomic_load_explicit(&meeting->round, memory_order_acquire) == round; i++)
        if (i < 200)
            sched_yield();
        else
            rest_ns(50000);
}
