/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Semaphores that threads use as locks, as Python's threading.Lock does: each thread gives back what it takes. A thread
 * that waits there is kept by the threads that have it, so it is not idle. Where threads wait for work, others give.
 *
 * A semaphore of several permits lets as many threads go on at once, and what one of them does meanwhile is no section
 * that the others wait for. The permits are the initial value and those that no thread has taken before it gave them:
 * what is left at the end, for then threads have given back what they took.
 */
#include <stdlib.h>

#include "walk.h"

enum { LEAST_TAKEN = 4, UNPAIRED_SHARE = 20 }; /* one in so many may be without its counterpart, as at the end */

struct permits {
    uint32_t object, thread;
    uint64_t taken, given;
};

struct rep_table rep_permits_table(void) {
    return (struct rep_table){.key_bytes = 8, .entry_bytes = sizeof(struct permits), .most = REP_MOST_PAIRS};
}

void rep_permits_count(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, uint64_t n) {
    const bool takes = (e->op == SBT_TRACE_SEM_WAIT || e->op == SBT_TRACE_SEM_TRYWAIT) && e->result == 0;
    if (e->object >= w->report->info.n_objects || (!takes && e->op != SBT_TRACE_SEM_POST))
        return;
    const uint32_t key[2] = {e->object, thread};
    struct permits *p = rep_table_get(&w->permits, key);
    if (p == NULL)
        return;
    p->taken += takes ? n : 0;
    p->given += takes ? 0 : n;
}

/* Of one object: by all threads; and by how much one thread's numbers differ. */
struct sums {
    uint64_t taken, given, unpaired;
    uint32_t n_threads;
};

static bool has_one_permit(const struct rep_object *o, const struct sums *s) {
    return o->size <= 1 && o->size + s->given <= s->taken + 1;
}

bool rep_permits_settle(struct rep_walk *w) {
    struct rep_report *r = w->report;
    struct sums *sums = calloc((size_t)r->info.n_objects + 1, sizeof *sums);
    if (sums == NULL)
        return rep_no_memory(w->error);
    for (size_t i = 0; i < w->permits.n; i++) {
        const struct permits *p = (const struct permits *)(void *)w->permits.entries + i;
        struct sums *s = &sums[p->object];
        s->taken += p->taken;
        s->given += p->given;
        s->unpaired += p->taken > p->given ? p->taken - p->given : p->given - p->taken;
        s->n_threads += p->taken > 0;
    }
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        r->objects[i].gives_back = sums[i].n_threads > 1 && sums[i].taken >= LEAST_TAKEN &&
                                   sums[i].unpaired * UNPAIRED_SHARE <= sums[i].taken &&
                                   has_one_permit(&r->objects[i], &sums[i]);
    free(sums);
    rep_table_free(&w->permits);
    return true;
}
