/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lock-transfers [--threads N] [--lines N]: what each lock of bench/locks moves from cache to cache for a section, as
 * the model of code_sched.c counts it: for machines without counters. Prints a line of JSON for each lock.
 *
 * Each thread has a cache of its own, and makes one access in turn. A section reads and writes so many shared lines.
 * The threads do nothing between sections.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_sched.h"
#include "locks/locks.h"

enum { MOST_THREADS = 16, MOST_LINES = 8, SECTIONS = 200 };

static const struct lock_kind *kind;
static uint32_t n_lines = 5, *line[MOST_LINES];
static int n_threads = 4;
static void *lock, *node[MOST_THREADS];

static void section(void *context) {
    (void)context;
    for (uint32_t i = 0; i < n_lines; i++) {
        code_touch(line[i], CODE_READ);
        uint32_t seen = *line[i];
        code_touch(line[i], CODE_WRITE);
        *line[i] = seen + 1;
    }
}

static void thread(int t) {
    for (int i = 0; i < SECTIONS; i++)
        kind->execute(lock, node[t], section, NULL);
}

static void setup(void) {
    for (uint32_t i = 0; i < n_lines; i++)
        line[i] = code_alloc(sizeof **line);
    lock = code_alloc(kind->bytes);
    kind->init(lock);
    for (int i = 0; i < n_threads; i++) {
        node[i] = code_alloc(kind->node_bytes + 1);
        kind->node_init(lock, node[i]);
    }
}

static const char *at_end(void) {
    for (uint32_t i = 0; i < n_lines; i++)
        if (*line[i] != (uint32_t)(n_threads * SECTIONS))
            return "a shared line has a wrong count";
    return NULL;
}

static bool number(const char *text, long most, long *value) {
    char *end;
    *value = strtol(text, &end, 10);
    return *text != '\0' && *end == '\0' && *value >= 1 && *value <= most;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        long value = 0;
        bool is_threads = strcmp(argv[i], "--threads") == 0;
        if ((!is_threads && strcmp(argv[i], "--lines") != 0) || i + 1 == argc ||
            !number(argv[i + 1], is_threads ? MOST_THREADS : MOST_LINES, &value)) {
            fprintf(stderr, "usage: %s [--threads N] [--lines N] (legal: 1 to %d threads, 1 to %d lines)\n", argv[0],
                    MOST_THREADS, MOST_LINES);
            return 2;
        }
        if (is_threads)
            n_threads = (int)value;
        else
            n_lines = (uint32_t)value;
    }
    for (size_t i = 0; lock_kinds[i] != NULL; i++) {
        struct code_transfers counted;
        kind = lock_kinds[i];
        /* The C library's; rcl-walk counts the second; the last excludes no thread. */
        if (kind == &lock_posix || kind == &lock_rcl || kind->alone)
            continue;
        struct code_scenario s = {kind->name, n_threads, setup, thread, at_end, 0};
        const char *why = code_run(&s, &counted);
        if (why != NULL) {
            fprintf(stderr, "lock-transfers: %s: %s\n", kind->name, why);
            return 1;
        }
        printf("{\"lock\":\"%s\",\"threads\":%d,\"lines\":%" PRIu32 ",\"transfers_per_op\":%.3f,"
               "\"invalidations_per_op\":%.3f}\n",
               kind->name, n_threads, n_lines, (double)counted.transfers / (n_threads * SECTIONS),
               (double)counted.invalidations / (n_threads * SECTIONS));
    }
    return 0;
}
