/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is what a trace says possible? For whole traces of processes that nobody else shares objects with: each mutex's
 * acquisitions have the numbers from 1 without a gap, each signal ends one wait at most and was given before that
 * ended, no barrier generation has more members than its count, each post is consumed once, threads are created once
 * before they are joined, and no thread works longer than the clock on the wall says. usage: trace-check FILE [OP=COUNT
 * ...]: also, how many events there must be
 */
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_errors;

#define WRONG(...) (n_errors++, printf("  "), printf(__VA_ARGS__), printf("\n"))

struct numbered { /* a number given to an event of an object */
    uint32_t object, op;
    uint64_t order, begin_ns, end_ns;
};

struct list {
    struct numbered *at;
    size_t n;
};

static void add(struct list *list, uint32_t object, uint64_t order, const struct sbt_trace_event *e) {
    if ((list->n & (list->n - 1)) == 0)
        list->at = realloc(list->at, (list->n == 0 ? 1 : 2 * list->n) * sizeof *list->at);
    if (list->at == NULL)
        exit(2);
    list->at[list->n++] = (struct numbered){object, e->op, order, e->at_ns, e->at_ns + e->took_ns};
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

/* From 1, each once; of what is numbered before it is done, `n_missing` may have been under way at the end. */
static void check_sequence(struct list *list, const char *what, uint64_t n_missing) {
    sort(list);
    for (size_t i = 0; i < list->n; i++) {
        uint64_t wanted = i > 0 && list->at[i - 1].object == list->at[i].object ? list->at[i - 1].order + 1 : 1;
        if (list->at[i].order > wanted && list->at[i].order - wanted <= n_missing) {
            n_missing -= list->at[i].order - wanted;
        } else if (list->at[i].order != wanted) {
            WRONG("object %u: %s %llu comes where %llu should", list->at[i].object, what,
                  (unsigned long long)list->at[i].order, (unsigned long long)wanted);
            return;
        }
    }
}

static const struct numbered *find(const struct list *list, const struct numbered *key) {
    return list->n > 0 ? bsearch(key, list->at, list->n, sizeof *list->at, by_number) : NULL;
}

/* What was consumed was there before, and once if `once` says so. Times are exact to a microsecond. */
static void check_consumed(const struct list *given, struct list *taken, uint32_t broadcast, const char *what) {
    sort(taken);
    for (size_t i = 0; i < taken->n; i++) {
        const struct numbered *t = &taken->at[i], *g = find(given, t);
        if (g == NULL)
            WRONG("object %u: %s %llu ended a wait and was never given", t->object, what, (unsigned long long)t->order);
        else if (g->begin_ns > t->end_ns + 2000)
            WRONG("object %u: %s %llu was given after the wait that it ended", t->object, what,
                  (unsigned long long)t->order);
        else if (g->op != broadcast && i > 0 && by_number(&taken->at[i - 1], t) == 0)
            WRONG("object %u: %s %llu ended two waits", t->object, what, (unsigned long long)t->order);
    }
}

static void check_barriers(struct list *waits, const uint32_t *size) {
    sort(waits);
    size_t run = 0;
    for (size_t i = 0; i < waits->n; i++) {
        run = i > 0 && by_number(&waits->at[i - 1], &waits->at[i]) == 0 ? run + 1 : 1;
        if (run > size[waits->at[i].object]) {
            WRONG("barrier %u: more than %u in generation %llu", waits->at[i].object, size[waits->at[i].object],
                  (unsigned long long)waits->at[i].order);
            return;
        }
    }
}

static struct list locks, signals, waits, posts, consumed, meetings, writers, spins;
static uint64_t n_ops[SBT_TRACE_N_OPS];

static void take(const struct sbt_trace_event *e, uint32_t *size, uint8_t *created, uint8_t *joined) {
    bool good = e->result == 0;
    n_ops[e->op]++;
    if (e->size != 0 && e->object != SBT_TRACE_NONE)
        size[e->object] = e->size;
    switch (e->op) {
    case SBT_TRACE_MUTEX_LOCK:
    case SBT_TRACE_MUTEX_TRYLOCK:
        if (e->order != 0)
            add(&locks, e->object, e->order, e);
        else if (good)
            WRONG("object %u: a lock without a number", e->object);
        break;
    case SBT_TRACE_COND_WAIT:
        if (e->relock != 0)
            add(&locks, e->other, e->relock, e);
        if (e->order != 0)
            add(&waits, e->object, e->order, e);
        break;
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
        add(&signals, e->object, e->order, e);
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

static void check_ops(int argc, char **argv) {
    for (int i = 2; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        bool known = false;
        for (unsigned op = 0; equals != NULL && op < SBT_TRACE_N_OPS; op++) {
            const char *name = sbt_trace_op_name(op);
            if (strlen(name) != (size_t)(equals - argv[i]) || strncmp(name, argv[i], strlen(name)) != 0)
                continue;
            known = true;
            if (n_ops[op] != strtoull(equals + 1, NULL, 10))
                WRONG("%s wanted, %llu are there", argv[i], (unsigned long long)n_ops[op]);
        }
        if (!known)
            WRONG("no operation in '%s'", argv[i]);
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
        uint64_t work_ns = 0, end_ns = 0;
        int r;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while ((r = sbt_trace_next(&cursor, &e, &error)) == 1) {
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
    if (info->whole && info->n_lost == 0) {
        uint64_t n_running = info->n_threads - n_ops[SBT_TRACE_THREAD_END]; /* at the end: one call each, at most */
        check_sequence(&locks, "acquisition", 0);
        check_sequence(&signals, "signal", n_running);
        check_sequence(&posts, "post", n_running);
        check_sequence(&writers, "acquisition for writing", 0);
        check_sequence(&spins, "acquisition", 0);
        check_consumed(&signals, &waits, SBT_TRACE_COND_BROADCAST, "signal");
        check_consumed(&posts, &consumed, SBT_TRACE_N_OPS, "post");
        check_barriers(&meetings, size);
    }
    check_ops(argc, argv);
    printf("%s: %s, %llu events, %d faults\n", argv[1], info->whole ? "whole" : "not whole",
           (unsigned long long)info->n_events, n_errors);
    return n_errors != 0;
}
