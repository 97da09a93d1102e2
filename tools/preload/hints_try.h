/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of `subutai hints` share: candidates, and what their runs have shown. */
#ifndef CMD_HINTS_TRY_H
#define CMD_HINTS_TRY_H

#include <stdbool.h>
#include <stdio.h>

#include "command.h"
#include "hints_find.h"
#include "stats.h"
#include "trial.h"

enum hints_kind { HINTS_GIVE_UP, HINTS_BARRIER, HINTS_KEEP, HINTS_KINDS };

/* A hint that has been tried. */
struct hints_candidate {
    const struct hints_site *site;
    enum hints_kind kind;
    bool is_kept;
    double ratio; /* time without it over time with it; NaN: a run has failed */
};

struct hints_search {
    struct trial_program program;
    const char *library, *library_name;
    const char *given_library; /* --library; NULL: not given */
    struct settings settings;  /* of all runs under the engine det */
    const char *module;        /* the program's own path: its call sites are named by the last part of that */
    const char *folder;
    int n_runs;
    size_t n_most; /* candidate call sites */
    bool progress_lines;

    int status;                     /* of runs with a log; others must end so too */
    struct hints_profile *profiles; /* without hints, and with those that were kept, one more each time */
    size_t n_profiles;
    struct hints_candidate *tried;
    size_t n_tried;
    struct stats native, without, with; /* seconds; NaN in `with`: no hint was kept before the last runs */
    bool is_of_use;                     /* the last runs: otherwise none is kept */
};

/* hints_try.c: the first run, then candidates one by one; at last all that is kept. */
void hints_search_run(struct hints_search *s);

/* What was lost at last. */
const struct hints_profile *hints_last_profile(const struct hints_search *s);

/* "give-up-turn" */
const char *hints_kind_label(enum hints_kind kind);

/* hints_write.c. A hint file of what is kept, and of `more` (NULL: none); commented or not. */
void hints_write(FILE *out, const struct hints_search *s, const struct hints_candidate *more, bool is_commented);
/* What has been found, for people. */
void hints_report(FILE *out, const struct hints_search *s);

#endif
