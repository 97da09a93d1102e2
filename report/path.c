/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The critical path, from the end of the program backwards. The last thread's time belongs to the path down to the
 * moment at which another thread ended its last wait. There the path goes on in that thread. Each thread's waits are
 * looked at once, from the last to the first, so the walk ends.
 */
#include <stdlib.h>

#include "walk.h"

static bool is_later(const struct rep_thread *a, const struct rep_thread *b) {
    return a->still_runs != b->still_runs ? b->still_runs : a->end_ns > b->end_ns;
}

/* The thread that ended the program; threads that it left running did not make it last longer. */
static uint32_t last_thread(const struct rep_report *r) {
    uint32_t last = 0;
    for (uint32_t i = 1; i < r->info.n_threads; i++)
        if (r->threads[i].n_events > 0 && is_later(&r->threads[i], &r->threads[last]))
            last = i;
    return last;
}

/* The last wait of the thread that ended by `at_ns` and has not been looked at; NULL: none. */
static const struct rep_wait *wait_before(struct rep_walk *w, uint32_t thread, uint64_t at_ns) {
    struct rep_walker *t = &w->walkers[thread];
    while (t->last_wait != REP_NONE) {
        const struct rep_wait *wait = &w->waits[t->last_wait];
        t->last_wait = wait->before;
        if (wait->to_ns <= at_ns)
            return wait;
    }
    return NULL;
}

static bool add(struct rep_path *path, size_t *capacity, struct rep_segment segment) {
    if (path->n_segments == *capacity) {
        size_t more = *capacity == 0 ? 1024 : 2 * *capacity;
        struct rep_segment *longer = realloc(path->segments, more * sizeof *longer);
        if (longer == NULL)
            return false;
        path->segments = longer;
        *capacity = more;
    }
    path->segments[path->n_segments++] = segment;
    return true;
}

static void turn_round(struct rep_path *path) {
    for (size_t i = 0; i < path->n_segments / 2; i++) {
        struct rep_segment s = path->segments[i];
        path->segments[i] = path->segments[path->n_segments - 1 - i];
        path->segments[path->n_segments - 1 - i] = s;
    }
}

bool rep_path_find(struct rep_walk *w) {
    struct rep_report *r = w->report;
    struct rep_path *path = &r->path;
    uint32_t thread = last_thread(r);
    uint64_t at_ns = r->threads[thread].end_ns;
    size_t capacity = 0;
    for (const struct rep_wait *wait;;) {
        struct rep_segment s = {.to_ns = at_ns, .thread = thread, .object = REP_NONE, .kind = REP_N_KINDS};
        wait = wait_before(w, thread, at_ns);
        s.from_ns = wait == NULL ? (r->threads[thread].begin_ns < at_ns ? r->threads[thread].begin_ns : at_ns)
                                 : wait->release_ns;
        if (wait != NULL) {
            s.object = wait->object;
            s.kind = wait->kind;
        }
        if (!add(path, &capacity, s))
            return rep_no_memory(w->error);
        if (wait == NULL)
            break;
        thread = wait->waker;
        at_ns = wait->release_ns;
    }
    turn_round(path);
    path->ns = r->threads[last_thread(r)].end_ns - path->segments[0].from_ns;
    return true;
}
