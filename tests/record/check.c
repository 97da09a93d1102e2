/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is what a trace says possible? For whole traces of processes that share no objects with others: each mutex's
 * acquisitions have the numbers from 1 without a gap, and each ended after the one before was given back, or after the
 * one before at least, for locks of other kinds; each signal ends one wait at most and was given during it; a
 * barrier's generations have as many members as it was made for, which were all there at some moment; each post is
 * consumed once; threads are created once before they are joined; no thread works longer than the clock on the wall
 * says. What may be missing is what the trace counts as lost, and a call of each thread that had not ended.
 * usage: trace-check FILE [OP=COUNT | OP:none=COUNT | apart ...]: also, how many events there must be, and how many
 * successful ones without a number (of the signal that ended the wait, of the post that was consumed); apart: no call
 * of a thread begins before its last one has ended
 */
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_errors;

#define WRONG(...) (n_errors++, printf("  "), printf(__VA_ARGS__), printf("\n"))

struct numbered { /* a number given to an event of an object */
    uint32_t object, op, thread;
    uint64_t order, begin_ns, end_ns;
};

struct list {
    struct numbered *at;
    size_t n, room;
};

static uint32_t thread;    /* its events are read */
static uint64_t n_missing; /* events that may be */

static void add(struct list *list, uint32_t object, uint64_t order, const struct sbt_trace_event *e) {
    if (list->n == list->room) {
        list->room = list->n == 0 ? 64 : 2 * list->n;
        list->at = realloc(list->at, list->room * sizeof *list->at);
    }
    if (list->at == NULL)
        exit(2);
    list->at[list->n++] = (struct numbered){object, e->op, thread, order, e->at_ns, e->at_ns + e->took_ns};
}

static int by_number(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(struct list *list) {
    if (list->n > 0)
        qsort(list->at, list->n, sizeof *list->at, by_number);
}

enum { EXACT_NS = 2000 }; /* times are to a microsecond, each of two */

/* From 1, each once. */
static void check_sequence(struct list *list, const char *what) {
    uint64_t missing = n_missing;
    sort(list);
    for (size_t i = 0; i < list->n; i++) {
        uint64_t wanted = i > 0 && list->at[i - 1].object == list->at[i].object ? list->at[i - 1].order + 1 : 1;
        if (list->at[i].order > wanted && list->at[i].order - wanted <= missing) {
            missing -= list->at[i].order - wanted;
        } else if (list->at[i].order != wanted) {
            WRONG("object %u: %s %llu comes where %llu should", list->at[i].object, what,
                  (unsigned long long)list->at[i].order, (unsigned long long)wanted);
            return;
        }
    }
}

/* Sorted. One holds it at a time: each acquisition ends after the one before it, which has begun by then. */
static void check_turns(const struct list *list, const char *what) {
    for (size_t i = 1; i < list->n; i++) {
        const struct numbered *a = &list->at[i - 1], *b = &list->at[i];
        if (a->object == b->object && b->end_ns + EXACT_NS < a->end_ns)
            WRONG("object %u: %s %llu ended before %llu", a->object, what, (unsigned long long)b->order,
                  (unsigned long long)a->order);
    }
}

static const struct numbered *find(const struct list *list, const struct numbered *key) {
    return list->n > 0 ? bsearch(key, list->at, list->n, sizeof *list->at, by_number) : NULL;
}

/*
 * The next owner gets the lock after it was given back. It need not have been given back: its memory may have been
 * forgotten while it was locked, and taken for the same mutex later. `locks` is sorted.
 */
static void check_released(const struct list *locks, struct list *released) {
    sort(released);
    for (size_t i = 1; i < locks->n; i++) {
        const struct numbered *a = &locks->at[i - 1], *b = &locks->at[i], *r = find(released, a);
        if (a->object == b->object && r != NULL && b->end_ns + EXACT_NS < r->begin_ns)
            WRONG("object %u: acquisition %llu ended before the last one was given back", b->object,
                  (unsigned long long)b->order);
    }
}

enum { NO_BROADCAST = SBT_TRACE_N_OPS };

static uint64_t n_woken, n_ended; /* threads that wake-ups of futexes woke, waits that returned after one */
static struct list announced;     /* waits for a futex that found another value, and the wake-up before their end */

/* What was consumed was there before, posts long before perhaps, and once if it is no broadcast. */
static void check_consumed(const struct list *given, struct list *taken, uint32_t broadcast, const char *what) {
    uint64_t missing = n_missing;
    sort(taken);
    for (size_t i = 0; i < taken->n; i++) {
        const struct numbered *t = &taken->at[i], *g = find(given, t);
        if (g == NULL && missing > 0)
            missing--;
        else if (g == NULL)
            WRONG("object %u: %s %llu ended a wait and was never given", t->object, what, (unsigned long long)t->order);
        else if (g->begin_ns > t->end_ns + EXACT_NS)
            WRONG("object %u: %s %llu was given after the wait that it ended", t->object, what,
                  (unsigned long long)t->order);
        else if (broadcast != NO_BROADCAST && taken != &announced && g->end_ns + EXACT_NS < t->begin_ns)
            WRONG("object %u: %s %llu was over before the wait that it ended", t->object, what,
                  (unsigned long long)t->order);
        else if (g->op != broadcast && taken != &announced && i > 0 && by_number(&taken->at[i - 1], t) == 0)
            WRONG("object %u: %s %llu ended two waits", t->object, what, (unsigned long long)t->order);
    }
}

/* More threads than the barrier is for can meet in other groups than they are counted in. */
static bool too_many(const struct numbered *at, size_t n, uint32_t size) {
    uint32_t *threads = calloc(size, sizeof *threads), n_threads = 0;
    if (threads == NULL)
        exit(2);
    for (size_t i = 0; i < n && n_threads <= size; i++) {
        uint32_t k = 0;
        while (k < n_threads && threads[k] != at[i].thread)
            k++;
        if (k == n_threads && n_threads++ < size)
            threads[k] = at[i].thread;
    }
    free(threads);
    return n_threads > size;
}

static void check_generation(const struct numbered *at, size_t n, uint32_t size, bool last, uint64_t *missing) {
    uint64_t begin_ns = 0, end_ns = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        begin_ns = at[i].begin_ns > begin_ns ? at[i].begin_ns : begin_ns;
        end_ns = at[i].end_ns < end_ns ? at[i].end_ns : end_ns;
    }
    if (n > size || (!last && size - n > *missing))
        WRONG("barrier %u: %zu of %u in generation %llu", at->object, n, size, (unsigned long long)at->order);
    else if (!last)
        *missing -= size - n;
    if (end_ns + EXACT_NS < begin_ns)
        WRONG("barrier %u: a thread left generation %llu before all were there", at->object,
              (unsigned long long)at->order);
}

static void check_barriers(struct list *waits, const uint32_t *sizes) {
    uint64_t missing = n_missing;
    sort(waits);
    for (size_t i = 0, end, next; i < waits->n; i = end) {
        uint32_t object = waits->at[i].object, size = sizes[object];
        for (end = i; end < waits->n && waits->at[end].object == object;)
            end++;
        if (size == 0 || too_many(&waits->at[i], end - i, size))
            continue;
        for (size_t k = i; k < end; k = next) {
            for (next = k; next < end && waits->at[next].order == waits->at[k].order;)
                next++;
            check_generation(&waits->at[k], next - k, size, next == end, &missing);
        }
    }
}

static struct list locks, released, signals, waits, posts, consumed, meetings, writers, spins;
static struct list held; /* of the thread that is read, by mutex */
static uint64_t n_ops[SBT_TRACE_N_OPS], n_unnumbered[SBT_TRACE_N_OPS];

static void hold(uint32_t mutex, uint64_t order, const struct sbt_trace_event *e) {
    add(&locks, mutex, order, e);
    add(&held, mutex, order, e);
}

static void release(uint32_t mutex, const struct sbt_trace_event *e) {
    for (size_t i = held.n; i-- > 0;) {
        if (held.at[i].object != mutex)
            continue;
        add(&released, mutex, held.at[i].order, e);
        memmove(&held.at[i], &held.at[i + 1], (held.n - i - 1) * sizeof *held.at);
        held.n--;
        return;
    }
}

static void take(const struct sbt_trace_event *e, uint32_t *size, uint8_t *created, uint8_t *joined) {
    bool good = e->result == 0;
    if (sbt_trace_still_runs(e))
        return;
    n_ops[e->op]++;
    n_unnumbered[e->op] += good && e->order == 0;
    if (e->size != 0 && e->object != SBT_TRACE_NONE)
        size[e->object] = e->size;
    switch (e->op) {
    case SBT_TRACE_MUTEX_LOCK:
    case SBT_TRACE_MUTEX_TRYLOCK:
        if (e->order != 0)
            hold(e->object, e->order, e);
        else if (good)
            WRONG("object %u: a lock without a number", e->object);
        break;
    case SBT_TRACE_MUTEX_UNLOCK:
        if (good)
            release(e->object, e);
        break;
    case SBT_TRACE_COND_WAIT:
        if (e->relock != 0) {
            release(e->other, e);
            hold(e->other, e->relock, e);
        }
        if (e->order != 0)
            add(&waits, e->object, e->order, e);
        break;
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
        add(&signals, e->object, e->order, e);
        break;
    case SBT_TRACE_FUTEX_WAKE: { /* as a broadcast: it is not known which it woke */
        struct sbt_trace_event as = *e;
        as.op = SBT_TRACE_COND_BROADCAST;
        n_woken += e->size;
        add(&signals, e->object, e->order, &as);
        break;
    }
    case SBT_TRACE_FUTEX_WAIT:
        n_ended += good;
        if (e->order != 0)
            add(good ? &waits : &announced, e->object, e->order, e);
        if (!good && e->result != EAGAIN && e->order != 0)
            WRONG("object %u: a wait that failed was ended by a wake-up", e->object);
        break;
    case SBT_TRACE_BARRIER_WAIT:
        add(&meetings, e->object, e->order, e);
        break;
    case SBT_TRACE_RWLOCK_WRLOCK:
    case SBT_TRACE_RWLOCK_TRYWRLOCK:
        if (good)
            add(&writers, e->object, e->order, e);
        break;
    case SBT_TRACE_SPIN_LOCK:
    case SBT_TRACE_SPIN_TRYLOCK:
        if (good)
            add(&spins, e->object, e->order, e);
        break;
    case SBT_TRACE_SEM_POST:
        add(&posts, e->object, e->order, e);
        break;
    case SBT_TRACE_SEM_WAIT:
    case SBT_TRACE_SEM_TRYWAIT:
        if (good && e->order != 0)
            add(&consumed, e->object, e->order, e);
        break;
    case SBT_TRACE_THREAD_CREATE:
        if (good && created[e->other]++ != 0)
            WRONG("thread %u was created twice", e->other);
        break;
    case SBT_TRACE_THREAD_JOIN:
        if (good && e->other == SBT_TRACE_NONE)
            WRONG("a thread was joined that is not known");
        else if (good && joined[e->other]++ != 0)
            WRONG("thread %u was joined twice", e->other);
        break;
    }
}

static uint64_t n_within; /* calls that began before the thread's last one had ended */

static void check_ops(int argc, char **argv) {
    for (int i = 2; i < argc; i++) {
        char name[64], none[8] = "";
        unsigned long long wanted;
        unsigned op = 0;
        if (strcmp(argv[i], "apart") == 0) {
            if (n_within != 0)
                WRONG("%llu calls began before the last one of their thread had ended", (unsigned long long)n_within);
            continue;
        }
        bool sense = sscanf(argv[i], "%63[a-z_]%7[:none]=%llu", name, none, &wanted) == 3 ||
                     sscanf(argv[i], "%63[a-z_]=%llu", name, &wanted) == 2;
        while (sense && op < SBT_TRACE_N_OPS && strcmp(sbt_trace_op_name(op), name) != 0)
            op++;
        if (!sense || op == SBT_TRACE_N_OPS)
            WRONG("no operation in '%s'", argv[i]);
        else if ((none[0] != '\0' ? n_unnumbered : n_ops)[op] != wanted)
            WRONG("%s wanted, %llu are there", argv[i],
                  (unsigned long long)(none[0] != '\0' ? n_unnumbered : n_ops)[op]);
    }
}

int main(int argc, char **argv) {
    struct sbt_trace_error error = {0};
    struct sbt_trace *trace = argc > 1 ? sbt_trace_open(argv[1], &error) : NULL;
    if (trace == NULL) {
        printf("%s: at byte %llu: %s\n", argc > 1 ? argv[1] : "no file", (unsigned long long)error.offset,
               error.reason);
        return 2;
    }
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    uint32_t *size = calloc(info->n_objects + 1, sizeof *size);
    uint8_t *created = calloc(info->n_threads + 1, 1), *joined = calloc(info->n_threads + 1, 1);
    if (size == NULL || created == NULL || joined == NULL)
        return 2;
    for (uint32_t t = 0; t < info->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event e = {0};
        uint64_t work_ns = 0, end_ns = 0, last_ns = 0;
        int r;
        thread = t;
        held.n = 0;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while ((r = sbt_trace_next(&cursor, &e, &error)) == 1) {
            n_within += e.at_ns + 2 * EXACT_NS < last_ns;
            if (e.op != SBT_TRACE_INIT) /* a run-time library makes mutexes of its own within its calls */
                last_ns = e.at_ns + e.took_ns;
            work_ns += e.work_ns;
            end_ns = e.at_ns + e.took_ns;
            take(&e, size, created, joined);
        }
        if (r < 0)
            WRONG("at byte %llu: %s", (unsigned long long)error.offset, error.reason);
        if (work_ns > end_ns + 10000000 && t > 0) /* the first one's began before the trace */
            WRONG("thread %u has worked %llu ns in %llu", t, (unsigned long long)work_ns, (unsigned long long)end_ns);
    }
    for (uint32_t t = 0; t < info->n_threads; t++)
        if (joined[t] > created[t])
            WRONG("thread %u was joined and not created", t);
    sort(&signals);
    sort(&posts);
    if (info->whole) {
        n_missing = info->n_lost;
        check_sequence(&locks, "acquisition");
        check_sequence(&writers, "acquisition for writing");
        check_sequence(&spins, "acquisition");
        check_turns(&locks, "acquisition");
        check_turns(&writers, "acquisition for writing");
        check_turns(&spins, "acquisition");
        n_missing += info->n_threads - n_ops[SBT_TRACE_THREAD_END]; /* running at the end: a call each, at most */
        check_sequence(&signals, "signal");
        check_sequence(&posts, "post");
        check_consumed(&signals, &waits, SBT_TRACE_COND_BROADCAST, "signal");
        if (n_ended > n_woken) /* a thread that was woken may be another process's, or be killed before its wait ends */
            WRONG("%llu waits for futexes ended, and %llu were woken", (unsigned long long)n_ended,
                  (unsigned long long)n_woken);
        check_consumed(&signals, &announced, SBT_TRACE_COND_BROADCAST, "signal");
        check_consumed(&posts, &consumed, NO_BROADCAST, "post");
        check_barriers(&meetings, size);
        check_released(&locks, &released);
    }
    check_ops(argc, argv);
    printf("%s: %s, %llu events, %d faults\n", argv[1], info->whole ? "whole" : "not whole",
           (unsigned long long)info->n_events, n_errors);
    return n_errors != 0;
}
