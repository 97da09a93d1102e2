/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a schedule log with times says about hints: after which calls a thread keeps others waiting for the turn. */
#ifndef CMD_HINTS_FIND_H
#define CMD_HINTS_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "schedule_read.h"

enum { HINTS_CALLS = 1 + SCHEDULE_MAX_CALLERS, HINTS_THREADS = 16384, HINTS_BUCKETS = 252 };

/*
 * A call site. Where what a thread computes afterwards depends on the callers, a call site with some callers is one of
 * its own. What a thread computes between an operation there and its next operation is the site's.
 */
struct hints_site {
    /* "MODULE+0xOFFSET", with the module's path: the call, its caller, and so on. Allocated. */
    char *calls[HINTS_CALLS];
    size_t n_calls;
    char *name;          /* all of them, with < in between; allocated */
    char *place;         /* the same, as symbols_name has it; allocated */
    uint64_t n;          /* operations, but for each thread's last */
    uint64_t compute_ns; /* all that is computed after them */
    double typical_ns;   /* the mean of that, without the longest twentieth */
    double lost_ns;      /* what others waited meanwhile for the turn, which was this thread's: a sum over threads */
    double passed_ns;    /* what others waited while the turn was passed on after them: the same */
    uint32_t n_threads;  /* that made them, at a time */
};

struct hints_profile {
    struct hints_site *sites; /* those with the most lost time first */
    size_t n_sites;
    uint64_t n_ops, wall_ns; /* from the first operation to the last */
    double lost_ns;          /* of all sites, while threads computed and while the turn was passed on */
};

/* Refuses a log that is damaged, or has no times, in the name of the subcommand. */
struct hints_profile hints_profile(const char *subcommand, const char *path);
void hints_profile_free(struct hints_profile *p);

/*
 * A shorter computation is not worth that the turn goes round in between. For a longer one the turn is worth giving up.
 */
#define HINTS_SHORT_NS 4000
#define HINTS_LONG_NS 7000

/* Operations of one call with the same callers. */
struct hints_way {
    uint32_t calls[HINTS_CALLS]; /* sites of the log; 0: not known */
    uint64_t n, compute_ns;
    double lost_ns, passed_ns;
    uint64_t seen[HINTS_THREADS / 64]; /* threads that made them */
    uint32_t buckets[HINTS_BUCKETS];   /* how often so long was computed after them */
};

/* hints_group.c: the bucket of that time. */
unsigned hints_bucket_of(uint64_t ns);
/* From the ways, which are put in order, to the sites of the profile. */
void hints_group(struct hints_profile *p, const struct schedule_log *log, struct hints_way *ways, size_t n);

#endif
