/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Does a profile have these orders of locks, and no other ones? usage: order-check FILE <LINES
 * A line: HELD TAKEN TIMES GATES READING, by address; as many lines of one pair as there are lives of such objects.
 * TIMES 0: at least one, and other pairs are allowed. READING: 1 if HELD was so for reading each time, and 2 if TAKEN
 * was, and 4 for each gate that was at some time.
 */
#include <stdbool.h>
#include <stdio.h>

#include "trace.h"

enum { MOST = 4096 };

static struct pair {
    uint64_t held, taken, n;
    uint32_t held_number, taken_number, n_gates, reading;
    bool known;
} pairs[MOST];
static int n_pairs, n_errors;

static uint32_t reading_of(const struct sbt_trace_order *o) {
    uint32_t reading = (o->held_shared ? 1 : 0) + (o->taken_shared ? 2 : 0);
    for (uint32_t i = 0; i < o->n_gates; i++)
        reading += o->gate_shared[i] ? 4 : 0;
    return reading;
}

static void add(const struct sbt_trace *trace, const struct sbt_trace_order *o) {
    int i = 0;
    while (i < n_pairs && (pairs[i].held_number != o->held || pairs[i].taken_number != o->taken))
        i++;
    if (i == MOST)
        return;
    if (i == n_pairs)
        pairs[n_pairs++] = (struct pair){sbt_trace_object_address(trace, o->held),
                                         sbt_trace_object_address(trace, o->taken),
                                         0,
                                         o->held,
                                         o->taken,
                                         o->n_gates,
                                         reading_of(o),
                                         false};
    pairs[i].n += o->n;
    pairs[i].n_gates = o->n_gates < pairs[i].n_gates ? o->n_gates : pairs[i].n_gates;
    pairs[i].reading = reading_of(o);
    if (o->held_site == SBT_TRACE_NONE || o->taken_site == SBT_TRACE_NONE ||
        sbt_trace_site_name(trace, o->held_site)[0] == '\0' || sbt_trace_site_name(trace, o->taken_site)[0] == '\0') {
        printf("  an order without its call sites\n");
        n_errors++;
    }
}

static bool take(uint64_t held, uint64_t taken, uint64_t n, uint32_t n_gates, uint32_t reading) {
    for (int i = 0; i < n_pairs; i++) {
        struct pair *p = &pairs[i];
        if (!p->known && p->held == held && p->taken == taken && (n == 0 || p->n == n) && p->n_gates == n_gates &&
            p->reading == reading)
            return p->known = true;
    }
    return false;
}

int main(int argc, char **argv) {
    struct sbt_trace_error error = {0, "usage: order-check FILE"};
    struct sbt_trace *trace = argc == 2 ? sbt_trace_open(argv[1], &error) : NULL;
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_order order;
    unsigned long long held, taken, n, n_gates, reading;
    bool others = false;
    int r;
    if (trace == NULL) {
        printf("  %s\n", error.reason);
        return 2;
    }
    sbt_trace_tally_begin(trace, &cursor);
    while ((r = sbt_trace_order_next(&cursor, &order, &error)) == 1)
        add(trace, &order);
    if (r < 0) {
        printf("  damaged: %s\n", error.reason);
        return 1;
    }
    while (scanf("%llx %llx %llu %llu %llu", &held, &taken, &n, &n_gates, &reading) == 5) {
        others |= n == 0;
        if (!take(held, taken, n, (uint32_t)n_gates, (uint32_t)reading)) {
            printf("  missing: %llx %llx %llu %llu %llu\n", held, taken, n, n_gates, reading);
            n_errors++;
        }
    }
    for (int i = 0; i < n_pairs && !others; i++)
        if (!pairs[i].known) {
            printf("  not wanted: %llx %llx %llu %u %u\n", (unsigned long long)pairs[i].held,
                   (unsigned long long)pairs[i].taken, (unsigned long long)pairs[i].n, pairs[i].n_gates,
                   pairs[i].reading);
            n_errors++;
        }
    sbt_trace_close(trace);
    return n_errors > 0;
}
