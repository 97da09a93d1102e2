/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interleaved runs with other hints each. */
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "hints_try.h"

/* A hint is kept if the time without it is so many times that with it: less is within what runs differ by. */
#define HELPS 1.03
/* And that in so large a part of the pairs of runs, on a busy machine too. */
#define MOSTLY 0.75
/* What is faster in the median, and not that often, is run as many times again: of few runs one that was late is much.
 */
#define ROUNDS 2
/* A candidate that took so many times as long in each of so many runs is not run again. */
#define HOPELESS 1.5
#define HOPELESS_RUNS 2

/* ---- runs ---- */

/* `hints` NULL: none. */
char **hints_environment(const struct hints_search *s, const char *hints, const char *schedule) {
    struct sbt_options options;
    struct settings settings = s->settings;
    settings.text[SBT_OPT_HINTS] = hints;
    settings.text[SBT_OPT_SCHEDULE] = schedule;
    settings.text[SBT_OPT_SCHEDULE_TIMES] = schedule != NULL ? "1" : NULL;
    settings.text[SBT_OPT_SCHEDULE_CALLERS] = schedule != NULL ? "3" : NULL;
    return env_build("hints", environ, &settings, NULL, s->library, s->library_name, &options);
}

static void visit(void *context, size_t variant, int run, struct trial *trial) {
    struct hints_series *all = context;
    all->seconds[variant][all->first_run + run] = (double)trial->wall_ns / 1e9;
    all->n_made[variant]++;
    all->has_failed[variant] = all->has_failed[variant] || trial->timed_out || trial->status != all->search->status;
}

/* Nothing comes of a variant, if the first one has failed. */
static bool is_hopeless(const struct hints_series *all, size_t variant, int run) {
    bool is_slow = variant > 0 && run >= HOPELESS_RUNS;
    for (int i = 0; i < run && is_slow; i++)
        is_slow = all->seconds[variant][i] > HOPELESS * all->seconds[0][i];
    return is_slow;
}

/* No more runs of what has failed, or cannot be the best: a candidate may be as slow as the time limit allows. */
static bool skips(void *context, size_t variant, int run) {
    const struct hints_series *all = context;
    bool is_of_round = all->again == 0 || variant == all->again || variant == all->base;
    run += all->first_run;
    return !is_of_round || (all->drops_slow && all->has_failed[0]) || all->has_failed[variant] ||
           all->n_made[variant] < run || (all->drops_slow && is_hopeless(all, variant, run));
}

void hints_add_variant(struct hints_series *all, const char *label, char **env) {
    all->labels[all->n] = label;
    all->envps[all->n] = env;
    all->seconds[all->n++] = cmd_allocate(ROUNDS * (size_t)all->search->n_runs, sizeof **all->seconds);
}

void hints_measure(struct hints_series *all, const char *prefix) {
    const struct series series = {.program = all->search->program,
                                  .n_engines = all->n,
                                  .labels = all->labels,
                                  .envps = all->envps,
                                  .n_runs = all->search->n_runs,
                                  .progress_lines = all->search->progress_lines,
                                  .prefix = prefix,
                                  .skips = skips};
    series_run(&series, visit, all);
}

void hints_free_series(struct hints_series *all) {
    for (size_t i = 0; i < all->n; i++) {
        free(all->seconds[i]);
        free((void *)(uintptr_t)all->envps[i]);
    }
}

/* ---- what they say ---- */

double hints_ratio_of(const struct hints_series *all, size_t variant) {
    if (all->has_failed[all->base] || all->has_failed[variant])
        return NAN;
    return stats_ratio(all->seconds[all->base], all->seconds[variant], (size_t)all->n_made[variant]).median;
}

/* Is it faster in most runs? */
static bool is_mostly_faster(const struct hints_series *all, size_t variant) {
    int n = all->n_made[variant], n_faster = 0;
    for (int i = 0; i < n; i++)
        n_faster += all->seconds[variant][i] < all->seconds[all->base][i];
    return n >= all->search->n_runs && n_faster >= MOSTLY * n;
}

/* The fastest variant, or the fastest of those that are so in most runs. 0: none helps. */
static size_t fastest(const struct hints_series *all, bool is_mostly) {
    size_t best = 0;
    double most = HELPS;
    for (size_t i = all->base + 1; i < all->n; i++) {
        double ratio = hints_ratio_of(all, i); /* NaN is not more */
        if (ratio > most && (!is_mostly || is_mostly_faster(all, i)))
            best = i, most = ratio;
    }
    return best;
}

size_t hints_choose(struct hints_series *all, const char *prefix) {
    size_t best = fastest(all, true), doubtful = fastest(all, false);
    if (best == doubtful)
        return best;
    all->again = doubtful;
    all->first_run = all->search->n_runs;
    hints_measure(all, prefix);
    return fastest(all, true);
}
