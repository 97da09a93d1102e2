/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers: each generation is split at its last arrival. Before it is the threads' imbalance, behind it the release.
 * A thread that is released late also arrives late, so imbalance alone does not say that work is shared unevenly. For
 * that the work between generations is compared: the last thread's with the mean. A last thread that was off the
 * processor for most of the difference had stalled: it slept, or the machine had no core for it.
 * A thread may be at the next generation while another one has not left the last one, so several are open. An OpenMP
 * barrier may also be met by several teams at a time.
 */
#include <stdlib.h>

#include "walk.h"

static uint64_t cut(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static struct rep_barrier_thread *of_thread(struct rep_barrier *b, uint32_t thread) {
    for (uint32_t i = 0; i < b->n_threads; i++)
        if (b->threads[i].thread == thread) {
            if (i > 0 && b->n_threads > 64) { /* many threads come in the same order again and again */
                struct rep_barrier_thread t = b->threads[i];
                b->threads[i] = b->threads[i - 1];
                b->threads[i - 1] = t;
                i--;
            }
            return &b->threads[i];
        }
    if (b->n_threads == b->capacity) {
        uint32_t capacity = b->capacity == 0 ? 16 : 2 * b->capacity;
        struct rep_barrier_thread *longer = realloc(b->threads, capacity * sizeof *longer);
        if (longer == NULL)
            return NULL;
        b->threads = longer;
        b->capacity = capacity;
    }
    b->threads[b->n_threads] = (struct rep_barrier_thread){.thread = thread};
    return &b->threads[b->n_threads++];
}

static void keep_worst(struct rep_barrier *b, const struct rep_open_generation *g) {
    struct rep_generation made = {g->number, g->first_ns, g->last_ns, g->end_ns, g->last_thread};
    unsigned least = 0;
    if (b->n_worst < REP_WORST) {
        b->worst[b->n_worst++] = made;
        return;
    }
    for (unsigned i = 1; i < REP_WORST; i++)
        if (b->worst[i].end_ns - b->worst[i].first_ns < b->worst[least].end_ns - b->worst[least].first_ns)
            least = i;
    if (made.end_ns - made.first_ns > b->worst[least].end_ns - b->worst[least].first_ns)
        b->worst[least] = made;
}

static void add_stall(struct rep_barrier *b, const struct rep_open_generation *g, uint64_t late_ns) {
    if (late_ns == 0 || 2 * g->last_off_ns <= late_ns)
        return;
    b->n_stalled++;
    b->stalled_ns += late_ns;
    b->stalled_imbalance_ns += g->last_ns - g->first_ns;
    if (late_ns > b->longest_stall_ns) {
        b->longest_stall_ns = late_ns;
        b->stalled_thread = g->last_thread;
    }
}

/* A generation counts if more than one thread was there, and all have left that came. */
static void close_generation(struct rep_barrier *b, struct rep_open_generation *g) {
    if (g->number != 0 && g->n_arrived > 1 && g->n_left == g->n_arrived &&
        (b->count == 0 || g->n_arrived == b->count)) {
        struct rep_barrier_thread *first = of_thread(b, g->first_thread), *last;
        if (first != NULL)
            first->n_first++;
        if ((last = of_thread(b, g->last_thread)) != NULL)
            last->n_last++;
        b->n_generations++;
        uint64_t late_ns = cut(g->last_work_ns, g->work_ns / g->n_arrived);
        b->balance_ns += late_ns;
        add_stall(b, g, late_ns);
        rep_histogram_add(&b->imbalance, g->last_ns - g->first_ns);
        rep_histogram_add(&b->release, cut(g->end_ns, g->last_ns));
        keep_worst(b, g);
    }
    *g = (struct rep_open_generation){0};
}

static struct rep_open_generation *generation(struct rep_barrier *b, struct rep_rings *rings, uint64_t number) {
    struct rep_open_generation *g = &rings->open[number % REP_GENERATIONS];
    if (g->number != number)
        close_generation(b, g);
    g->number = number;
    return g;
}

static struct rep_detail *with_barrier(struct rep_walk *w, uint32_t object) {
    struct rep_detail *d = rep_detail_of(w, object);
    return d != NULL && d->barrier != NULL && d->rings != NULL ? d : NULL;
}

void rep_arrive(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_detail *d = with_barrier(w, e->object);
    if (d == NULL || e->order == 0)
        return;
    struct rep_open_generation *g = generation(d->barrier, d->rings, e->order);
    if (g->n_arrived++ == 0) {
        g->first_ns = e->at_ns;
        g->first_thread = thread;
    }
    struct rep_barrier_thread *own = of_thread(d->barrier, thread);
    uint64_t from_ns = own != NULL && own->left_ns != 0 ? own->left_ns : w->report->threads[thread].begin_ns;
    g->last_work_ns = cut(e->at_ns, from_ns);
    g->work_ns += g->last_work_ns;
    g->last_off_ns = cut(w->report->threads[thread].times.off_cpu_ns, own != NULL ? own->left_off_ns : 0);
    g->last_ns = e->at_ns;
    g->last_thread = thread;
    g->last_site = e->site;
}

void rep_leave(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e) {
    struct rep_detail *d = with_barrier(w, e->object);
    struct rep_waited wait = {.thread = thread,
                              .object = e->object,
                              .site = e->site,
                              .kind = REP_BARRIER,
                              .from_ns = e->at_ns,
                              .to_ns = e->at_ns + e->took_ns,
                              .by = {.thread = REP_NONE, .site = REP_NONE}};
    w->report->objects[e->object].n++;
    if (d != NULL && e->order != 0) {
        struct rep_open_generation *g = generation(d->barrier, d->rings, e->order);
        struct rep_barrier_thread *own = of_thread(d->barrier, thread);
        uint64_t delay_ns = cut(wait.to_ns, g->last_ns);
        g->n_left++;
        g->end_ns = wait.to_ns > g->end_ns ? wait.to_ns : g->end_ns;
        rep_histogram_add(&d->barrier->delay, delay_ns);
        if (own != NULL) {
            own->n++;
            own->left_ns = wait.to_ns;
            own->left_off_ns = w->report->threads[thread].times.off_cpu_ns;
            own->late_ns += cut(e->at_ns, g->first_ns);
            rep_histogram_add(&own->delay, delay_ns);
        }
        if (g->n_arrived > 0)
            wait.by = (struct rep_release){.at_ns = g->last_ns, .thread = g->last_thread, .site = g->last_site};
        if (g->n_left == d->barrier->count && g->n_left == g->n_arrived)
            close_generation(d->barrier, g);
    }
    if (wait.by.thread == thread) { /* the last one waits for no other thread; it wakes them */
        rep_not_waited(w, thread, e->object, e->took_ns);
        return;
    }
    rep_waited(w, &wait);
    rep_pair_add(w, &wait, wait.by.thread, wait.by.site, wait.to_ns - wait.from_ns);
}

void rep_barriers_finish(struct rep_walk *w) {
    for (uint32_t i = 0; i < w->report->n_details; i++) {
        struct rep_detail *d = &w->report->details[i];
        for (unsigned g = 0; d->barrier != NULL && d->rings != NULL && g < REP_GENERATIONS; g++)
            close_generation(d->barrier, &d->rings->open[g]);
    }
}
