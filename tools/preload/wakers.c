/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which call ended which wait; see wakers.h. The first reading collects the waits. They are sorted by what they waited
 * for: the release with a number, of an object. The second reading finds for each release the waits that it may have
 * ended. Of several candidates the last one before the wait's end is it: the last reader lets a writer in, the last
 * arrival opens a barrier.
 */
#include "wakers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_NS = 1000 };

enum what {
    AFTER_ANY,       /* the end of the hold with this number, or of the last reader behind it */
    AFTER_EXCLUSIVE, /* the end of the exclusive hold with this number */
    AFTER_CALL,      /* a signal, post or wake-up with this number; an arrival of this generation */
    AFTER_THREAD     /* the end of the thread with this number */
};

struct wait {
    uint64_t number, index, end_ns;     /* index: of the wait, in its thread */
    uint64_t release_ns, release_index; /* no release before release_ns is it */
    uint32_t object, thread, releaser;  /* releaser: SBT_TRACE_NONE: not known */
    uint8_t what;
};

/* A call for a lock that timed out. */
struct timeout {
    uint64_t index, end_ns; /* index: of the call, in its thread */
    uint32_t object, thread, holder;
};

/* The last acquisition of an object. */
struct hold {
    uint64_t number, since_ns;
    uint32_t thread;
    bool shared;
};

struct wakers {
    struct wait *waits;       /* in the order of the events */
    uint32_t *sorted;         /* by object, what and number */
    uint32_t *first;          /* of each object in `sorted`, and the end; joins stand behind the last object */
    uint32_t *released;       /* the waits with a known end, by releaser and index */
    struct hold *holds;       /* by object */
    struct timeout *timeouts; /* by object and end; and in the order of the events when all is known */
    size_t n, capacity, n_released, n_timeouts, timeouts_capacity;
    size_t at_wait, at_released, at_timeout; /* how far the questions have come */
    uint32_t n_objects;
    bool profile;
};

bool wakers_read(const struct trace_request *r, const struct sbt_trace *trace, struct wakers_walk *walk) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    for (; walk->thread < info->n_threads; walk->thread++, walk->begun = false) {
        if (!walk->begun) {
            sbt_trace_cursor_begin(trace, walk->thread, &walk->cursor);
            walk->index = UINT64_MAX;
            walk->clock_ns = 0;
            walk->begun = true;
        }
        if (trace_next(r, &walk->cursor, &walk->event)) {
            if (info->generated)
                walk->event.at_ns = walk->clock_ns + walk->event.work_ns;
            walk->clock_ns = walk->event.at_ns + walk->event.took_ns;
            walk->index++;
            return true;
        }
    }
    return false;
}

/* ---- waits ---- */

static bool is_exclusive_wait(unsigned op) {
    return op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_RWLOCK_WRLOCK || op == SBT_TRACE_SPIN_LOCK;
}

/* What the call waited for. false: it does not wait, or there is no number for it. */
static bool waited_for(const struct wakers *w, const struct sbt_trace_event *e, struct wait *wait) {
    *wait = (struct wait){.object = e->object, .number = e->order, .releaser = SBT_TRACE_NONE};
    if (e->op == SBT_TRACE_THREAD_JOIN) {
        wait->what = AFTER_THREAD;
        wait->object = w->n_objects;
        wait->number = e->other;
        return e->other != SBT_TRACE_NONE;
    }
    if (e->order == 0 || e->object >= w->n_objects)
        return false;
    if (is_exclusive_wait(e->op)) {
        wait->what = AFTER_ANY;
        wait->number -= !w->profile; /* in a profile the number is the unlock's */
        return true;
    }
    wait->what = e->op == SBT_TRACE_RWLOCK_RDLOCK ? AFTER_EXCLUSIVE : AFTER_CALL;
    if (e->op == SBT_TRACE_BARRIER_WAIT) /* the last arrival waits for no other */
        wait->release_ns = e->at_ns;
    return e->op == SBT_TRACE_RWLOCK_RDLOCK || e->op == SBT_TRACE_COND_WAIT || e->op == SBT_TRACE_SEM_WAIT ||
           e->op == SBT_TRACE_FUTEX_WAIT || e->op == SBT_TRACE_BARRIER_WAIT;
}

static int compare_u64(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

/* ---- calls for locks that timed out ---- */

static void collect_timeout(struct wakers *w, const struct wakers_walk *walk) {
    const struct sbt_trace_event *e = &walk->event;
    if (e->result != ETIMEDOUT || e->object >= w->n_objects ||
        !(is_exclusive_wait(e->op) || e->op == SBT_TRACE_RWLOCK_RDLOCK))
        return;
    if (w->n_timeouts == w->timeouts_capacity) {
        w->timeouts_capacity = w->timeouts_capacity > 0 ? 2 * w->timeouts_capacity : 64;
        w->timeouts = cmd_reallocate(w->timeouts, w->timeouts_capacity, sizeof *w->timeouts);
    }
    w->timeouts[w->n_timeouts++] =
        (struct timeout){walk->index, e->at_ns + e->took_ns, e->object, walk->thread, e->other};
}

static int by_end(const void *a, const void *b) {
    const struct timeout *x = a, *y = b;
    int r = compare_u64(x->object, y->object);
    return r != 0 ? r : compare_u64(x->end_ns, y->end_ns);
}

static int by_event(const void *a, const void *b) {
    const struct timeout *x = a, *y = b;
    int r = compare_u64(x->thread, y->thread);
    return r != 0 ? r : compare_u64(x->index, y->index);
}

/* The thread of `walk` has had the object since then, and gives it back now. */
static void held_meanwhile(struct wakers *w, const struct wakers_walk *walk, uint32_t object, uint64_t since_ns) {
    const struct timeout first = {.object = object, .end_ns = since_ns};
    size_t low = 0, high = w->n_timeouts;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_end(&w->timeouts[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (struct timeout *t; low < w->n_timeouts && (t = &w->timeouts[low])->object == object; low++) {
        if (t->end_ns > walk->event.at_ns)
            return;
        if (t->holder == SBT_TRACE_NONE && t->thread != walk->thread)
            t->holder = walk->thread;
    }
}

/* ---- waits by what they waited for ---- */

static void collect(struct wakers *w, const struct wakers_walk *walk) {
    struct wait wait;
    collect_timeout(w, walk);
    if (walk->event.took_ns < WAIT_NS || walk->event.result != 0 || !waited_for(w, &walk->event, &wait))
        return;
    if (w->n == UINT32_MAX - 1) /* numbers have 32 bits; what is beyond has no arrow */
        return;
    if (w->n == w->capacity) {
        w->capacity = w->capacity > 0 ? 2 * w->capacity : 1024;
        w->waits = cmd_reallocate(w->waits, w->capacity, sizeof *w->waits);
    }
    wait.thread = walk->thread;
    wait.index = walk->index;
    wait.end_ns = walk->event.at_ns + walk->event.took_ns;
    w->waits[w->n++] = wait;
}

static int by_release(const struct wait *a, uint32_t object, unsigned what, uint64_t number) {
    int r = compare_u64(a->object, object);
    r = r != 0 ? r : compare_u64(a->what, what);
    return r != 0 ? r : compare_u64(a->number, number);
}

static int compare_waits(const void *a, const void *b, void *waits) {
    const struct wait *first = (struct wait *)waits + *(const uint32_t *)a;
    const struct wait *second = (struct wait *)waits + *(const uint32_t *)b;
    return by_release(first, second->object, second->what, second->number);
}

static void sort_waits(struct wakers *w) {
    w->sorted = cmd_allocate(w->n + 1, sizeof *w->sorted);
    w->first = cmd_allocate((size_t)w->n_objects + 2, sizeof *w->first);
    for (size_t i = 0; i < w->n; i++)
        w->sorted[i] = (uint32_t)i;
    qsort_r(w->sorted, w->n, sizeof *w->sorted, compare_waits, w->waits);
    size_t at = 0;
    for (size_t object = 0; object <= w->n_objects; object++) {
        w->first[object] = (uint32_t)at;
        while (at < w->n && w->waits[w->sorted[at]].object == object)
            at++;
    }
    w->first[w->n_objects + 1] = (uint32_t)at;
}

/* ---- releases ---- */

/* The call that `walk` is at gave what the waits with this number waited for. */
static void release(struct wakers *w, const struct wakers_walk *walk, uint32_t object, unsigned what, uint64_t number) {
    if (object > w->n_objects)
        return;
    uint32_t low = w->first[object], high = w->first[object + 1], end = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (by_release(&w->waits[w->sorted[middle]], object, what, number) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t at_ns = walk->event.op == SBT_TRACE_THREAD_END ? walk->clock_ns : walk->event.at_ns;
    for (; low < end; low++) {
        struct wait *wait = &w->waits[w->sorted[low]];
        if (by_release(wait, object, what, number) != 0)
            return;
        if (at_ns > wait->end_ns || at_ns < wait->release_ns)
            continue;
        if (wait->thread == walk->thread) { /* what it gave back itself, as the last of several readers */
            if (at_ns > wait->release_ns && what == AFTER_ANY) {
                wait->releaser = SBT_TRACE_NONE;
                wait->release_ns = at_ns;
            }
            continue;
        }
        wait->releaser = walk->thread;
        wait->release_ns = at_ns;
        wait->release_index = walk->index;
    }
}

static void take(struct wakers *w, const struct wakers_walk *walk, uint32_t object, uint64_t number, bool shared) {
    if (object < w->n_objects)
        w->holds[object] = (struct hold){number, walk->clock_ns, walk->thread, shared};
}

/* The thread gives back the object, which it holds unless the lock was not seen. */
static void give(struct wakers *w, const struct wakers_walk *walk, uint32_t object) {
    if (object >= w->n_objects)
        return;
    const struct hold *hold = &w->holds[object];
    if (w->profile) {
        if (walk->event.op != SBT_TRACE_COND_WAIT && walk->event.order != 0) {
            release(w, walk, object, AFTER_ANY, walk->event.order);
            release(w, walk, object, AFTER_EXCLUSIVE, walk->event.order);
        }
    } else if (hold->thread == walk->thread) {
        if (w->n_timeouts > 0)
            held_meanwhile(w, walk, object, hold->since_ns);
        release(w, walk, object, AFTER_ANY, hold->number);
        if (!hold->shared)
            release(w, walk, object, AFTER_EXCLUSIVE, hold->number);
    }
}

static void follow(struct wakers *w, const struct wakers_walk *walk) {
    const struct sbt_trace_event *e = &walk->event;
    switch (e->op) {
    case SBT_TRACE_MUTEX_LOCK:
    case SBT_TRACE_MUTEX_TRYLOCK:
    case SBT_TRACE_RWLOCK_WRLOCK:
    case SBT_TRACE_RWLOCK_TRYWRLOCK:
    case SBT_TRACE_SPIN_LOCK:
    case SBT_TRACE_SPIN_TRYLOCK:
    case SBT_TRACE_RWLOCK_RDLOCK:
    case SBT_TRACE_RWLOCK_TRYRDLOCK:
        if (e->result == 0)
            take(w, walk, e->object, e->order, e->op == SBT_TRACE_RWLOCK_RDLOCK || e->op == SBT_TRACE_RWLOCK_TRYRDLOCK);
        break;
    case SBT_TRACE_MUTEX_UNLOCK:
    case SBT_TRACE_RWLOCK_UNLOCK:
    case SBT_TRACE_SPIN_UNLOCK:
        give(w, walk, e->object);
        break;
    case SBT_TRACE_COND_WAIT:
        give(w, walk, e->other);
        take(w, walk, e->other, e->relock, false);
        break;
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
    case SBT_TRACE_SEM_POST:
    case SBT_TRACE_FUTEX_WAKE:
    case SBT_TRACE_BARRIER_WAIT:
        if (e->order != 0)
            release(w, walk, e->object, AFTER_CALL, e->order);
        break;
    case SBT_TRACE_THREAD_END:
        release(w, walk, w->n_objects, AFTER_THREAD, walk->thread);
        break;
    default:
        break;
    }
}

/* ---- questions ---- */

static int compare_released(const void *a, const void *b, void *waits) {
    const struct wait *first = (struct wait *)waits + *(const uint32_t *)a;
    const struct wait *second = (struct wait *)waits + *(const uint32_t *)b;
    int r = compare_u64(first->releaser, second->releaser);
    r = r != 0 ? r : compare_u64(first->release_index, second->release_index);
    return r != 0 ? r : compare_u64(*(const uint32_t *)a, *(const uint32_t *)b);
}

static void sort_released(struct wakers *w) {
    w->released = w->sorted; /* of which nothing is needed any more */
    w->sorted = NULL;
    for (size_t i = 0; i < w->n; i++)
        if (w->waits[i].releaser != SBT_TRACE_NONE)
            w->released[w->n_released++] = (uint32_t)i;
    qsort_r(w->released, w->n_released, sizeof *w->released, compare_released, w->waits);
}

struct wakers *wakers_find(const struct trace_request *r, const struct sbt_trace *trace) {
    struct wakers *w = cmd_allocate(1, sizeof *w);
    w->n_objects = sbt_trace_info(trace)->n_objects;
    w->profile = sbt_trace_info(trace)->profile;
    w->holds = cmd_allocate((size_t)w->n_objects + 1, sizeof *w->holds);
    for (struct wakers_walk walk = {0}; wakers_read(r, trace, &walk);)
        collect(w, &walk);
    sort_waits(w);
    if (w->n_timeouts > 0)
        qsort(w->timeouts, w->n_timeouts, sizeof *w->timeouts, by_end);
    for (struct wakers_walk walk = {0}; wakers_read(r, trace, &walk);)
        follow(w, &walk);
    sort_released(w);
    if (w->n_timeouts > 0)
        qsort(w->timeouts, w->n_timeouts, sizeof *w->timeouts, by_event);
    return w;
}

void wakers_free(struct wakers *w) {
    free(w->waits);
    free(w->released);
    free(w->first);
    free(w->holds);
    free(w->timeouts);
    free(w);
}

size_t wakers_count(const struct wakers *w) {
    return w->n_released;
}

uint32_t wakers_wait(struct wakers *w, uint32_t thread, uint64_t index) {
    if (w->at_wait == w->n || w->waits[w->at_wait].thread != thread || w->waits[w->at_wait].index != index)
        return 0;
    size_t i = w->at_wait++;
    return w->waits[i].releaser != SBT_TRACE_NONE ? (uint32_t)i + 1 : 0;
}

uint32_t wakers_holder(struct wakers *w, uint32_t thread, uint64_t index) {
    if (w->at_timeout == w->n_timeouts)
        return SBT_TRACE_NONE;
    const struct timeout *t = &w->timeouts[w->at_timeout];
    if (t->thread != thread || t->index != index)
        return SBT_TRACE_NONE;
    w->at_timeout++;
    return t->holder;
}

uint32_t wakers_ended(struct wakers *w, uint32_t thread, uint64_t index) {
    if (w->at_released == w->n_released)
        return 0;
    uint32_t i = w->released[w->at_released];
    if (w->waits[i].releaser != thread || w->waits[i].release_index != index)
        return 0;
    w->at_released++;
    return i + 1;
}

uint64_t wakers_release_ns(const struct wakers *w, uint32_t wait) {
    return w->waits[wait - 1].release_ns;
}
