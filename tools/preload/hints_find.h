/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a schedule log with times says about hints: after which calls a thread keeps others waiting for the turn. */
#ifndef CMD_HINTS_FIND_H
#define CMD_HINTS_FIND_H

#include <stddef.h>
#include <stdint.h>

/* A call site. What a thread computes between an operation there and its next operation is the site's. */
struct hints_site {
    char *name;          /* "MODULE+0xOFFSET", with the module's path; allocated */
    char *place;         /* as symbols_name has it; allocated */
    uint64_t n;          /* operations, but for each thread's last */
    uint64_t compute_ns; /* all that is computed after them */
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

#endif
