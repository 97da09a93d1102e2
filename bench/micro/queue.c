/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bounded-queue: producers and consumers over 16 places, one mutex, two conditions, signals under the mutex.
 * signal-storm: many signals, few waiters. Signalling threads never wait for what they announce, and waiters take all
 * that has come, so that most signals find no waiter; every other one is sent after the mutex was released.
 */
#include "bench.h"

#define N_PLACES 16

static struct {
    _Alignas(BENCH_LINE) pthread_mutex_t mutex;
    pthread_cond_t not_empty, not_full;
    uint64_t item[N_PLACES];
    unsigned first, n;
    int n_producing;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0};
static uint64_t *sums; /* per worker, of the items it put or took */

static void bounded_queue_setup(struct bench *b) {
    sums = bench_alloc((size_t)b->n_workers, sizeof *sums);
    queue.n_producing = bench_n_producers(b);
}

static void produce(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, (uint64_t)bench_n_producers(b)), sum = 0;
    while (bench_more(b, w->ops, share)) {
        uint64_t item = ((uint64_t)w->id << 40) + w->ops++;
        bench_busy_ns(b->think_ns);
        sum += item;
        bench_must(pthread_mutex_lock(&queue.mutex), "pthread_mutex_lock");
        while (queue.n == N_PLACES)
            bench_must(pthread_cond_wait(&queue.not_full, &queue.mutex), "pthread_cond_wait");
        queue.item[(queue.first + queue.n++) % N_PLACES] = item;
        bench_must(pthread_cond_signal(&queue.not_empty), "pthread_cond_signal");
        bench_must(pthread_mutex_unlock(&queue.mutex), "pthread_mutex_unlock");
    }
    sums[w->id] = sum;
    bench_must(pthread_mutex_lock(&queue.mutex), "pthread_mutex_lock");
    if (--queue.n_producing == 0)
        bench_must(pthread_cond_broadcast(&queue.not_empty), "pthread_cond_broadcast");
    bench_must(pthread_mutex_unlock(&queue.mutex), "pthread_mutex_unlock");
}

static void consume(struct bench *b, struct bench_worker *w) {
    uint64_t sum = 0;
    bench_must(pthread_mutex_lock(&queue.mutex), "pthread_mutex_lock");
    for (;;) {
        while (queue.n == 0 && queue.n_producing > 0)
            bench_must(pthread_cond_wait(&queue.not_empty, &queue.mutex), "pthread_cond_wait");
        if (queue.n == 0)
            break;
        sum += queue.item[queue.first];
        queue.first = (queue.first + 1) % N_PLACES;
        queue.n--;
        w->ops++;
        bench_must(pthread_cond_signal(&queue.not_full), "pthread_cond_signal");
        bench_must(pthread_mutex_unlock(&queue.mutex), "pthread_mutex_unlock");
        bench_busy_ns(b->think_ns);
        bench_must(pthread_mutex_lock(&queue.mutex), "pthread_mutex_lock");
    }
    bench_must(pthread_mutex_unlock(&queue.mutex), "pthread_mutex_unlock");
    sums[w->id] = sum;
}

static void bounded_queue_worker(struct bench *b, struct bench_worker *w) {
    w->id < bench_n_producers(b) ? produce(b, w) : consume(b, w);
}

static uint64_t bounded_queue_finish(struct bench *b) {
    uint64_t n_taken = bench_items_taken(b, sums);
    bench_must(pthread_cond_destroy(&queue.not_empty), "pthread_cond_destroy");
    bench_must(pthread_cond_destroy(&queue.not_full), "pthread_cond_destroy");
    bench_must(pthread_mutex_destroy(&queue.mutex), "pthread_mutex_destroy");
    return n_taken;
}

const struct bench_kind bench_bounded_queue = {"bounded-queue",     "item that went through a queue of 16 places",
                                               BENCH_THINK,         bench_at_least_two,
                                               bounded_queue_setup, bounded_queue_worker,
                                               bounded_queue_finish};

/* signal-storm: one waiter to three signalling threads, up to four channels. */
struct channel {
    _Alignas(BENCH_LINE) pthread_mutex_t mutex;
    pthread_cond_t condition;
    uint64_t n_pending; /* these two are protected by mutex */
    int n_signalling;
};
#define MAX_CHANNELS 4
static struct channel channels[MAX_CHANNELS];

static int n_waiters(const struct bench *b) {
    return b->threads / 4 > 0 ? b->threads / 4 : 1;
}

static int n_channels(const struct bench *b) {
    return n_waiters(b) < MAX_CHANNELS ? n_waiters(b) : MAX_CHANNELS;
}

static void signal_storm_setup(struct bench *b) {
    for (int i = 0; i < n_channels(b); i++) {
        bench_must(pthread_mutex_init(&channels[i].mutex, NULL), "pthread_mutex_init");
        bench_must(pthread_cond_init(&channels[i].condition, NULL), "pthread_cond_init");
        channels[i].n_signalling = b->n_workers - n_waiters(b);
    }
}

static void storm(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, (uint64_t)(b->n_workers - n_waiters(b)));
    int at = w->id % n_channels(b);
    while (bench_more(b, w->ops, share)) {
        struct channel *c = &channels[at];
        bool inside = w->ops++ & 1;
        bench_must(pthread_mutex_lock(&c->mutex), "pthread_mutex_lock");
        c->n_pending++;
        if (inside)
            bench_must(pthread_cond_signal(&c->condition), "pthread_cond_signal");
        bench_must(pthread_mutex_unlock(&c->mutex), "pthread_mutex_unlock");
        if (!inside)
            bench_must(pthread_cond_signal(&c->condition), "pthread_cond_signal");
        bench_busy_ns(b->think_ns);
        at = at + 1 < n_channels(b) ? at + 1 : 0;
    }
    for (int i = 0; i < n_channels(b); i++) {
        bench_must(pthread_mutex_lock(&channels[i].mutex), "pthread_mutex_lock");
        if (--channels[i].n_signalling == 0)
            bench_must(pthread_cond_broadcast(&channels[i].condition), "pthread_cond_broadcast");
        bench_must(pthread_mutex_unlock(&channels[i].mutex), "pthread_mutex_unlock");
    }
}

static void signal_storm_worker(struct bench *b, struct bench_worker *w) {
    if (w->id >= n_waiters(b)) {
        storm(b, w);
        return;
    }
    struct channel *c = &channels[w->id % n_channels(b)];
    bench_must(pthread_mutex_lock(&c->mutex), "pthread_mutex_lock");
    for (;;) {
        while (c->n_pending == 0 && c->n_signalling > 0)
            bench_must(pthread_cond_wait(&c->condition, &c->mutex), "pthread_cond_wait");
        if (c->n_pending == 0)
            break;
        w->ops += c->n_pending;
        c->n_pending = 0;
    }
    bench_must(pthread_mutex_unlock(&c->mutex), "pthread_mutex_unlock");
}

static uint64_t signal_storm_finish(struct bench *b) {
    uint64_t received = 0, sent = 0;
    for (int i = 0; i < b->n_workers; i++)
        *(i < n_waiters(b) ? &received : &sent) += b->workers[i].ops;
    bench_check_equal("the number of announcements received", received, sent);
    for (int i = 0; i < n_channels(b); i++) {
        bench_must(pthread_cond_destroy(&channels[i].condition), "pthread_cond_destroy");
        bench_must(pthread_mutex_destroy(&channels[i].mutex), "pthread_mutex_destroy");
    }
    return sent;
}

const struct bench_kind bench_signal_storm = {"signal-storm",     "signal, every other one outside the mutex",
                                              BENCH_THINK,        bench_at_least_two,
                                              signal_storm_setup, signal_storm_worker,
                                              signal_storm_finish};
