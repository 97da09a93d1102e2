/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is what a profile says possible, and is it as often there as it was done?
 * usage: profile-check FILE [--stacks | --names | OP=COUNT | OP:WHAT=NUMBER ...]
 * --names: of any trace, only whether what its events name is defined.
 * whole: and it is whole.
 * OP=COUNT: calls of that operation, events and tallies together. Waits for conditions are events; their tallies count
 * mutexes that were had again.
 *   OP:failed     calls in tallies that failed             OP:events   events
 *   OP:objects    different objects                        OP:none     calls in tallies without an object
 *   OP:some_none  1: there are some of these               OP:each     calls on each object
 *   OP:none_most  at most so many of these
 *   OP:most       at most so many calls
 *   OP:least      at least so many calls                   OP:ended    events that say which unlock ended them
 *   OP:timed      holds that were timed                    OP:result   the result of each event
 *   OP:mean_least the mean hold in ns, at least            OP:stacks   different stacks of events
 */
#include "format.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_errors;
#define WRONG(...) (n_errors++, printf("  "), printf(__VA_ARGS__), printf("\n"))

static struct sums {
    uint64_t n, n_tallied, n_failed, n_none, n_events, n_ended, n_timed, n_held, held_ns;
    uint32_t result;
    uint64_t *each; /* by object */
    uint32_t stack, n_stacks;
} sums[SBT_TRACE_N_OPS];

static const struct sbt_trace *trace;
static const struct sbt_trace_info *info;

static void count_object(struct sums *s, uint32_t object, uint64_t n) {
    if (object == SBT_TRACE_NONE)
        return;
    if (s->each == NULL && (s->each = calloc(info->n_objects + 1, sizeof *s->each)) == NULL)
        exit(2);
    s->each[object] += n;
}

static void check_holds(const struct sbt_trace_tally *t) {
    uint64_t n = 0, least = 0;
    for (unsigned b = 0; b < SBT_TRACE_N_HOLD_BUCKETS; b++) {
        n += t->held[b];
        least += b > 0 ? t->held[b] << b : 0;
    }
    if (n != t->n_held || t->n_held < t->n_timed || (t->n_timed == 0) != (t->n_held == 0))
        WRONG("holds: %llu timed, %llu held, %llu in buckets", (unsigned long long)t->n_timed,
              (unsigned long long)t->n_held, (unsigned long long)n);
    if (least > t->held_ns || t->held_ns > t->n_held * t->held_max_ns)
        WRONG("holds of %llu ns do not fit their lengths", (unsigned long long)t->held_ns);
}

static void read_tallies(void) {
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_tally t;
    struct sbt_trace_error error;
    int r;
    sbt_trace_tally_begin(trace, &cursor);
    while ((r = sbt_trace_tally_next(&cursor, &t, &error)) == 1) {
        struct sums *s = &sums[t.op];
        bool relock = t.op == SBT_TRACE_COND_WAIT;
        s->n += relock ? 0 : t.n;
        s->n_tallied += t.n;
        s->n_failed += t.n_failed;
        s->n_none += t.object == SBT_TRACE_NONE ? t.n : 0;
        s->n_timed += t.n_timed;
        s->n_held += t.n_held;
        s->held_ns += t.held_ns;
        if (!relock)
            count_object(s, t.object, t.n);
        check_holds(&t);
        if (t.site == SBT_TRACE_NONE || sbt_trace_site_name(trace, t.site)[0] == '\0')
            WRONG("a tally without a call site");
        if (info->whole && t.object != SBT_TRACE_NONE && sbt_trace_object_address(trace, t.object) == 0)
            WRONG("a tally's object has no address");
    }
    if (r < 0)
        WRONG("damaged: %s", error.reason);
}

/* The calls in tallies, as the last block of the file says. UINT64_MAX: it does not. */
static uint64_t total_calls(const char *path) {
    struct trace_preamble preamble;
    struct trace_block header = {.kind = 0};
    uint8_t bytes[128] = {0};
    const uint8_t *at = bytes;
    uint64_t value = UINT64_MAX;
    FILE *file = fopen(path, "rb");
    bool good = file != NULL && fread(&preamble, sizeof preamble, 1, file) == 1;
    while (good && header.kind != TRACE_BLOCK_END)
        good = fseek(file, header.kind != 0 ? (long)trace_payload_bytes(&header) : 0, SEEK_CUR) == 0 &&
               fread(&header, sizeof header, 1, file) == 1;
    good = good && header.definition_bytes <= sizeof bytes && fread(bytes, header.definition_bytes, 1, file) == 1;
    for (int i = 0; good && at != NULL && i < 2; i++) { /* events, then tallies */
        good = *at++ == (i == 0 ? TRACE_DEFINE_TOTALS : TRACE_DEFINE_TALLIED);
        for (int j = 0; at != NULL && j < 3; j++)
            at = trace_get(at, bytes + sizeof bytes, &value);
    }
    if (file != NULL)
        fclose(file);
    return good && at != NULL ? value : UINT64_MAX;
}

static void check_total(const char *path) {
    uint64_t n = 0, total = total_calls(path);
    for (int op = 0; op < SBT_TRACE_N_OPS; op++)
        n += sums[op].n_tallied;
    if (n != total)
        WRONG("%llu calls in tallies, not %llu", (unsigned long long)n, (unsigned long long)total);
}

/* A release that ended a wait. */
struct release {
    uint32_t object, thread;
    uint64_t order, at_ns;
};
static struct release *releases;
static size_t n_releases;
static uint64_t *named; /* by object: the last release that a wait names */

static bool is_unlock(unsigned op) {
    return op == SBT_TRACE_MUTEX_UNLOCK || op == SBT_TRACE_RWLOCK_UNLOCK || op == SBT_TRACE_SPIN_UNLOCK;
}

static bool is_lock(unsigned op) {
    return op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_RWLOCK_RDLOCK || op == SBT_TRACE_RWLOCK_WRLOCK ||
           op == SBT_TRACE_SPIN_LOCK;
}

static void check_names(uint32_t thread, const struct sbt_trace_event *e) {
    (void)thread;
    if (info->whole && e->site != SBT_TRACE_NONE && sbt_trace_site_name(trace, e->site)[0] == '\0')
        WRONG("an event's call site has no name");
    if (info->whole && e->object != SBT_TRACE_NONE && sbt_trace_object_address(trace, e->object) == 0)
        WRONG("an event's object has no address");
}

static void add_event(uint32_t thread, const struct sbt_trace_event *e) {
    struct sums *s = &sums[e->op];
    if (sbt_trace_still_runs(e))
        return;
    s->n++;
    s->n_events++;
    s->result = e->result;
    s->n_ended += e->order != 0;
    check_names(thread, e);
    s->n_stacks += e->stack != 0 && e->stack != s->stack;
    s->stack = e->stack != 0 ? e->stack : s->stack;
    count_object(s, e->object, 1);
    if (is_lock(e->op) && e->object != SBT_TRACE_NONE && e->order > named[e->object])
        named[e->object] = e->order;
    if (is_unlock(e->op)) {
        releases = realloc(releases, (n_releases + 1) * sizeof *releases);
        if (releases == NULL)
            exit(2);
        releases[n_releases++] = (struct release){e->object, thread, e->order, e->at_ns};
    }
}

static void read_events(void (*take)(uint32_t, const struct sbt_trace_event *)) {
    for (uint32_t t = 0; t < info->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event e;
        struct sbt_trace_error error;
        int r;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while ((r = sbt_trace_next(&cursor, &e, &error)) == 1)
            take(t, &e);
        if (r < 0)
            WRONG("damaged: %s", error.reason);
    }
}

static int by_number(const void *a, const void *b) {
    const struct release *x = a, *y = b;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/*
 * Of a whole trace: each object's releases have the numbers from 1, each once. Some may be missing, also the last:
 *  1. A thread releases an object, which gives the release its number, and is off its core before the call has ended.
 *  2. Another thread that has waited has the object now. Its wait is over, and names that release.
 *  3. The process ends. The call of step 1 never ends, so it is no event.
 *
 * So as many may be missing as there are threads without an end: one each.
 */
static void check_releases(void) {
    uint64_t n_missing = 0, most = info->n_threads - sums[SBT_TRACE_THREAD_END].n;
    size_t i = 0;
    if (n_releases > 0)
        qsort(releases, n_releases, sizeof *releases, by_number);
    for (uint32_t object = 0; object < info->n_objects && info->whole; object++) {
        uint64_t n = 0, last = 0;
        for (; i < n_releases && releases[i].object == object; i++, n++) {
            if (releases[i].order <= last)
                WRONG("object %u: unlock %llu is there twice", object, (unsigned long long)releases[i].order);
            last = releases[i].order;
        }
        n_missing += (named[object] > last ? named[object] : last) - n;
        if (n_missing > most) {
            WRONG("object %u: there are %llu unlocks, up to %llu, and a wait names %llu", object, (unsigned long long)n,
                  (unsigned long long)last, (unsigned long long)named[object]);
            return;
        }
    }
}

/* A wait was ended by a release of another thread that began before its end. */
static void check_wait(uint32_t thread, const struct sbt_trace_event *e) {
    if (!is_lock(e->op) || e->order == 0 || !info->whole)
        return;
    struct release wanted = {.object = e->object, .order = e->order};
    const struct release *r =
        n_releases > 0 ? bsearch(&wanted, releases, n_releases, sizeof *releases, by_number) : NULL;
    if (r != NULL && (r->thread == thread || r->at_ns > e->at_ns + e->took_ns + 2000))
        WRONG("object %u: unlock %llu, of thread %u, did not end a wait of thread %u", e->object,
              (unsigned long long)e->order, r->thread, thread);
}

static uint64_t n_objects(const struct sums *s) {
    uint64_t n = 0;
    for (uint32_t i = 0; s->each != NULL && i < info->n_objects; i++)
        n += s->each[i] != 0;
    return n;
}

static bool is_on_each(const struct sums *s, uint64_t wanted) {
    for (uint32_t i = 0; s->each != NULL && i < info->n_objects; i++)
        if (s->each[i] != 0 && s->each[i] != wanted)
            return false;
    return s->each != NULL;
}

static void expect(const char *text, uint64_t found, uint64_t wanted, bool good) {
    if (!good)
        WRONG("%s: %llu, not %llu", text, (unsigned long long)found, (unsigned long long)wanted);
}

static void check_count(const char *text) {
    char op[64] = "", what[64] = "";
    unsigned long long wanted;
    unsigned i = 0;
    if (sscanf(text, "%63[a-z_]:%63[a-z_]=%llu", op, what, &wanted) != 3 &&
        (what[0] = '\0', sscanf(text, "%63[a-z_]=%llu", op, &wanted) != 2))
        exit(2);
    while (i < SBT_TRACE_N_OPS && strcmp(sbt_trace_op_name(i), op) != 0)
        i++;
    if (i == SBT_TRACE_N_OPS)
        exit(2);
    const struct sums *s = &sums[i];
    uint64_t mean = s->n_held > 0 ? s->held_ns / s->n_held : 0;
    const struct {
        const char *what;
        uint64_t found;
        bool good;
    } all[] = {
        {"", s->n, s->n == wanted},
        {"failed", s->n_failed, s->n_failed == wanted},
        {"events", s->n_events, s->n_events == wanted},
        {"objects", n_objects(s), n_objects(s) == wanted},
        {"none", s->n_none, s->n_none == wanted},
        {"none_most", s->n_none, s->n_none <= wanted},
        {"some_none", s->n_none, (s->n_none > 0) == (wanted > 0)},
        {"each", wanted, wanted == 0 || is_on_each(s, wanted)},
        {"least", s->n, s->n >= wanted},
        {"most", s->n, s->n <= wanted},
        {"ended", s->n_ended, s->n_ended == wanted},
        {"timed", s->n_timed, s->n_timed == wanted},
        {"mean_least", mean, mean >= wanted},
        {"result", s->result, s->result == wanted},
        {"stacks", s->n_stacks, s->n_stacks == wanted},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (strcmp(all[k].what, what) == 0) {
            expect(text, all[k].found, wanted, all[k].good);
            return;
        }
    exit(2);
}

/* Each stack on a line: the names of its call sites. */
static void print_stack(uint32_t thread, const struct sbt_trace_event *e) {
    uint32_t sites[64], n = sbt_trace_stack(trace, e->stack, sites, 64);
    (void)thread;
    if (n == 0)
        return;
    printf("%s", sbt_trace_op_name(e->op));
    for (uint32_t i = 0; i < n && i < 64; i++)
        printf(" %s", sbt_trace_site_name(trace, sites[i]));
    printf("\n");
}

int main(int argc, char **argv) {
    struct sbt_trace_error error;
    trace = argc > 1 ? sbt_trace_open(argv[1], &error) : NULL;
    if (trace == NULL) {
        printf("  %s\n", argc > 1 ? error.reason : "usage: profile-check FILE [--stacks | --names | OP=COUNT...]");
        return 2;
    }
    info = sbt_trace_info(trace);
    if (argc == 3 && strcmp(argv[2], "--stacks") == 0) {
        read_events(print_stack);
        return 0;
    }
    if (argc == 3 && strcmp(argv[2], "--names") == 0) {
        read_events(check_names);
        return n_errors > 0;
    }
    if (!info->profile)
        WRONG("not a profile");
    if ((named = calloc(info->n_objects + 1, sizeof *named)) == NULL)
        return 2;
    read_tallies();
    read_events(add_event);
    check_releases();
    read_events(check_wait);
    if (info->whole)
        check_total(argv[1]);
    if (info->whole && info->n_lost != 0)
        WRONG("%llu lost", (unsigned long long)info->n_lost);
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "whole") != 0)
            check_count(argv[i]);
        else if (!info->whole)
            WRONG("not whole");
    return n_errors > 0;
}
