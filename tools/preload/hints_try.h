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
    bool is_kept, in_set; /* of a set that is kept as a whole */
    double ratio;         /* time without it over time with it; NaN: a run has failed */
};

/* Hints to be tried together. */
struct hints_more {
    struct hints_candidate *list;
    size_t n;
};

/* How a set of hints has fared (hints_plan.c). */
struct hints_set {
    size_t n_kinds[HINTS_KINDS];
    bool is_kept, replaces; /* hints that were kept before */
    double ratio;           /* to the time with those, or without hints */
};
enum { HINTS_SETS = 5 };

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
    size_t n_tried, first_tried; /* from there on: since a set is kept */
    struct hints_set sets[HINTS_SETS];
    size_t n_sets;
    struct stats native, without, with; /* seconds; NaN in `with`: no hint was kept before the last runs */
    bool is_of_use;                     /* the last runs: otherwise none is kept */
};

/* hints_try.c: the first run, then candidates one by one; at last all that is kept. */
void hints_search_run(struct hints_search *s);

/* A run with that hint file (NULL: none) and a log. False: it has failed. Otherwise there is another profile. */
bool hints_run_profile(struct hints_search *s, const char *hints);
/* A hint file with all that is kept, and more (NULL: none); its path, allocated. */
const char *hints_write_file(const struct hints_search *s, const char *name, const struct hints_more *more);

/* hints_series.c: the hints that are kept so far, and beside them others. */
enum { HINTS_VARIANTS = 1 + HINTS_SETS };
struct hints_series {
    struct hints_search *search;
    size_t n, base; /* the variant that others are to be faster than; 0 but for the last runs */
    const char *labels[HINTS_VARIANTS];
    char *const *envps[HINTS_VARIANTS];
    double *seconds[HINTS_VARIANTS];
    bool has_failed[HINTS_VARIANTS];
    int n_made[HINTS_VARIANTS]; /* runs */
    bool drops_slow;
    size_t again;  /* the second round's only variant beside the base; 0: the first round */
    int first_run; /* of the round */
};
void hints_add_variant(struct hints_series *all, const char *label, char **env);
void hints_measure(struct hints_series *all, const char *prefix);
/*
 * Behind hints_measure: the fastest variant behind the base that helps, by median and in most runs; 0: none does. One
 * that is faster by its median only is measured as many times again before.
 */
size_t hints_choose(struct hints_series *all, const char *prefix);
/* The base's time over the time with it; NaN: a run has failed. */
double hints_ratio_of(const struct hints_series *all, size_t variant);
void hints_free_series(struct hints_series *all);
/* Of a run under the engine det; `hints`, `schedule` NULL: none. */
char **hints_environment(const struct hints_search *s, const char *hints, const char *schedule);

/*
 * hints_plan.c: sets of hints, by how long threads compute after each call. True: one is kept instead of what was kept
 * before.
 */
bool hints_plan(struct hints_search *s);

/* What was lost at last. */
const struct hints_profile *hints_last_profile(const struct hints_search *s);

/* "give-up-turn" */
const char *hints_kind_label(enum hints_kind kind);

/* hints_write.c. A hint file of what is kept, and of `more` (NULL: none); commented or not. */
void hints_write(FILE *out, const struct hints_search *s, const struct hints_more *more, bool is_commented);
/* What has been found, for people. */
void hints_report(FILE *out, const struct hints_search *s);

#endif
