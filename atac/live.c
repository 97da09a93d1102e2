/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Real threads: the clock, waits, and the run. */
#include "live.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * A sleep of the kernel's ends some 50 us late, so waits below SHORT_NS yield. Beside other processes a yield takes as
 * long as their turns: a thread that yielded for each message that it reads, 3 us each, would read them more slowly
 * than others send. Waits below SPIN_NS do not even yield, until a thread has kept its core by them for KEPT_NS: one
 * that asks again and again whether there is a message may wait for a thread that needs that core.
 */
enum { SHORT_NS = 100000, SPIN_NS = 10000, KEPT_NS = 1000000 };

struct live live;
_Thread_local struct live_thread *live_self;
static void (*thread_body)(void *argument);
static void *body_argument;
static _Thread_local uint64_t kept_ns; /* by waits without a yield, since the last one */

/* ---- time ---- */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t live_cycles(void) {
    return (now_ns() - live.begin_ns) / live.ns_a_cycle;
}

static struct timespec timespec_of(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static void spin_until_ns(uint64_t ns, uint64_t now) {
    kept_ns += ns - now;
    while (now_ns() < ns)
        live_check();
}

/* A failure of the run ends long waits too: it signals the thread's condition. */
static void wait_until_ns(uint64_t ns) {
    struct timespec until = timespec_of(ns);
    for (uint64_t now; live_check(), (now = now_ns()) < ns;) {
        if (ns - now < SPIN_NS && kept_ns < KEPT_NS) {
            spin_until_ns(ns, now);
            continue;
        }
        kept_ns = 0;
        if (ns - now < SHORT_NS) {
            sched_yield();
            continue;
        }
        live_lock();
        if (!live.failed)
            pthread_cond_timedwait(&live_self->awake, &live.lock, &until);
        live_unlock();
    }
}

void live_wait_until(uint64_t cycles) {
    wait_until_ns(live.begin_ns + cycles * live.ns_a_cycle);
}

/* When the thread's core has computed so long for it: what other threads of the core have asked for comes first. */
static uint64_t computed_ns(uint64_t ns) {
    uint64_t now = now_ns(), end, *core_free = live.shares ? &live.core_free_ns[live_self->core] : NULL;
    if (core_free == NULL)
        return now + ns;
    uint64_t before = __atomic_load_n(core_free, __ATOMIC_RELAXED);
    do
        end = (before > now ? before : now) + ns;
    while (!__atomic_compare_exchange_n(core_free, &before, end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return end;
}

/*
 * From now on, and not from the cycle that has begun: no call takes less than the model says. Without costs others run:
 * a thief that looks again and again would keep a core from threads with work.
 */
void live_compute(uint64_t n_cycles) {
    live_check();
    if (live.costs && n_cycles != 0)
        wait_until_ns(computed_ns(n_cycles * live.ns_a_cycle));
    else if (n_cycles != 0)
        sched_yield();
}

/* ---- waits and failures ---- */

void live_lock(void) {
    pthread_mutex_lock(&live.lock);
}

void live_unlock(void) {
    pthread_mutex_unlock(&live.lock);
}

void live_check(void) {
    if (live_self != NULL && __atomic_load_n(&live.failed, __ATOMIC_RELAXED))
        pthread_exit(NULL);
}

void live_note_failure(const char *text) {
    if (!live.failed)
        snprintf(live.error, sizeof live.error, "%s", text);
    __atomic_store_n(&live.failed, true, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < live.n_begun; i++)
        pthread_cond_signal(&live.threads[i].awake);
}

_Noreturn void live_fail_locked(const char *text) {
    live_note_failure(text);
    live_unlock();
    pthread_exit(NULL);
}

static void fail(const char *text) {
    live_lock();
    live_fail_locked(text);
}

/* With the lock. */
static void look_for_stuck(void) {
    char text[sizeof live.error];
    uint32_t i = 0;
    if (live.failed || live.n_stuck != live.n_living || live.n_living == 0)
        return;
    while (!live.threads[i].stuck)
        i++;
    if (live.threads[i].wait == LIVE_FOR_MESSAGE)
        snprintf(text, sizeof text, "thread %u waits for a message of channel %u for ever", i, live.threads[i].channel);
    else
        snprintf(text, sizeof text, "thread %u waits for shared word %u for ever", i, live.threads[i].word);
    live_note_failure(text);
}

void live_block(enum live_wait wait, uint64_t until) {
    struct live_thread *self = live_self;
    self->wait = wait;
    if (until == UINT64_MAX) {
        self->stuck = true;
        live.n_stuck++;
        look_for_stuck();
        while (self->stuck && !live.failed)
            pthread_cond_wait(&self->awake, &live.lock);
    } else {
        struct timespec time = timespec_of(live.begin_ns + until * live.ns_a_cycle);
        while (self->wait != LIVE_RUNS && !live.failed &&
               pthread_cond_timedwait(&self->awake, &live.lock, &time) != ETIMEDOUT) {
        }
    }
    self->wait = LIVE_RUNS;
    if (live.failed) {
        live_unlock();
        pthread_exit(NULL);
    }
}

void live_wake(struct live_thread *t) {
    live.n_stuck -= t->stuck;
    t->stuck = false;
    t->wait = LIVE_RUNS;
    pthread_cond_signal(&t->awake);
}

/* ---- the machine ---- */

static uint32_t self_number(void) {
    return live_self != NULL ? live_self->number : ATAC_NO_THREAD;
}

static uint32_t n_channels(void) {
    live_lock();
    uint32_t n = live.net.config.n_channels - live.n_channels;
    live_unlock();
    return n;
}

static uint32_t channel(void) {
    live_lock();
    uint32_t number = live.n_channels < live.net.config.n_channels ? live.n_channels++ : ATAC_NO_CHANNEL;
    live_unlock();
    return number;
}

static const struct atac_machine machine = {.self = self_number,
                                            .cycles = live_cycles,
                                            .compute = live_compute,
                                            .fail = fail,
                                            .n_channels = n_channels,
                                            .channel = channel,
                                            .subscribe = live_subscribe,
                                            .set_filter = live_set_filter,
                                            .send = live_send,
                                            .receive = live_receive,
                                            .n_words = live_n_words,
                                            .words = live_words,
                                            .load = live_load,
                                            .store = live_store,
                                            .fetch_add = live_fetch_add,
                                            .swap = live_swap,
                                            .compare_and_swap = live_compare_and_swap,
                                            .spin_while = live_spin_while,
                                            .futex_wait = live_futex_wait,
                                            .futex_wake = live_futex_wake};

/* ---- the run ---- */

/* A body returns, or calls pthread_exit. */
static void thread_ended(void *unused) {
    (void)unused;
    live_lock();
    live.n_living--;
    live.end_ns = now_ns();
    look_for_stuck();
    live_unlock();
}

static void *begin(void *argument) {
    struct live_thread *self = argument;
    live_self = self;
    live_lock();
    while (!live.go && !live.failed)
        pthread_cond_wait(&self->awake, &live.lock);
    live_unlock();
    live_check();
    pthread_cleanup_push(thread_ended, NULL);
    thread_body(body_argument);
    pthread_cleanup_pop(1);
    return NULL;
}

static bool init(const struct live_config *config) {
    struct hw_optical_config optical = config->optical;
    memset(&live, 0, sizeof live);
    live.costs = config->time_scale != 0;
    live.ns_a_cycle = live.costs ? config->time_scale : 1;
    live.begin_ns = now_ns();
    pthread_mutex_init(&live.lock, NULL);
    if (!live.costs)
        optical.transport_cycles = optical.controller_cycles = optical.check_cycles = 0;
    live.shares = config->n_threads > optical.n_cores;
    live.threads = calloc(config->n_threads, sizeof *live.threads);
    live.core_free_ns = calloc(optical.n_cores, sizeof *live.core_free_ns);
    return live.threads != NULL && live.core_free_ns != NULL && live_words_init() &&
           live_network_init(&optical, config->n_threads);
}

static void free_all(void) {
    for (uint32_t i = 0; i < live.n_threads; i++)
        pthread_cond_destroy(&live.threads[i].awake);
    pthread_mutex_destroy(&live.lock);
    live_network_free();
    live_words_free();
    free(live.core_free_ns);
    free(live.threads);
    live.threads = NULL;
    atac_machine = NULL;
}

static void free_unless(const bool *prepared) {
    atac_prepares = false;
    if (!*prepared)
        free_all();
}

/* An exception, or pthread_exit, ends the run before it has begun. */
static void prepare_run(void (*prepare)(void *argument), void *argument) {
    bool prepared __attribute__((cleanup(free_unless))) = false;
    atac_prepares = true;
    if (prepare != NULL)
        prepare(argument);
    prepared = true;
}

/* The threads begin together, when all have been made. */
static void start_threads(uint32_t n, uint32_t stack_bytes) {
    pthread_condattr_t clock;
    pthread_attr_t attributes;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_attr_init(&attributes);
    if (stack_bytes != 0)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    for (uint32_t i = 0; i < n; i++) {
        live.threads[i].number = i;
        live.threads[i].core = i % live.net.config.n_cores;
        pthread_cond_init(&live.threads[i].awake, &clock);
        live.n_threads++;
    }
    for (int error = 0; live.n_begun < n && error == 0;) {
        struct live_thread *t = &live.threads[live.n_begun];
        error = pthread_create(&t->thread, &attributes, begin, t);
        live_lock();
        if (error == 0)
            live.n_begun++;
        else
            live_note_failure(strerror(error));
        live_unlock();
    }
    pthread_attr_destroy(&attributes);
    pthread_condattr_destroy(&clock);
}

const char *live_run(const struct live_config *config, void (*prepare)(void *argument), void (*body)(void *argument),
                     void *argument, uint64_t *n_cycles) {
    static char error[sizeof live.error];
    if (!init(config)) {
        free_all();
        return "no memory for the cores";
    }
    atac_machine = &machine;
    atac_running = config->settings;
    if (!live.costs)
        atac_running.software_cycles = 0;
    thread_body = body;
    body_argument = argument;
    prepare_run(prepare, argument);
    if (!live.failed)
        start_threads(config->n_threads, config->stack_bytes);
    live_lock();
    live.go = true;
    live.n_living = live.n_begun;
    live.begin_ns = live.end_ns = now_ns();
    for (uint32_t i = 0; i < live.n_begun; i++)
        pthread_cond_signal(&live.threads[i].awake);
    live_unlock();
    for (uint32_t i = 0; i < live.n_begun; i++)
        pthread_join(live.threads[i].thread, NULL);
    *n_cycles = (live.end_ns - live.begin_ns) / live.ns_a_cycle;
    memcpy(error, live.error, sizeof error);
    bool failed = live.failed;
    free_all();
    return failed ? error : NULL;
}
