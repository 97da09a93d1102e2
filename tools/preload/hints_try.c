/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runs of `subutai hints`. A candidate is measured beside the hints that are kept so far: interleaved runs without
 * it, with it, and with its other kind.
 */
#include "hints_try.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "folder.h"

/* A hint is kept if the time without it is so many times that with it: less is within what runs differ by. */
#define HELPS 1.03
/* And that in so large a part of the pairs of runs, on a busy machine too. */
#define MOSTLY 0.75
/* A call site is tried if so large a part of all time that was lost was lost for it. */
#define WORTH 0.01
/* A candidate that took so many times as long in each of so many runs is not run again. */
#define HOPELESS 1.5
#define HOPELESS_RUNS 2
/* A run may last so many times as long as the first one, and that much longer. Then it counts as failed. */
#define LIMIT 10
#define LIMIT_MORE_NS INT64_C(10000000000)

enum { MOST_VARIANTS = 1 + HINTS_KINDS };

/* What is measured beside each other. */
struct series_of {
    struct hints_search *search;
    size_t n;
    const char *labels[MOST_VARIANTS];
    char *const *envps[MOST_VARIANTS];
    double *seconds[MOST_VARIANTS];
    bool has_failed[MOST_VARIANTS];
    int n_made[MOST_VARIANTS]; /* runs */
    bool drops_slow;
};

/* ---- runs ---- */

/* `hints` NULL: none. */
static char **environment(const struct hints_search *s, const char *hints, const char *schedule) {
    struct sbt_options options;
    struct settings settings = s->settings;
    settings.text[SBT_OPT_HINTS] = hints;
    settings.text[SBT_OPT_SCHEDULE] = schedule;
    settings.text[SBT_OPT_SCHEDULE_TIMES] = schedule != NULL ? "1" : NULL;
    return env_build("hints", environ, &settings, NULL, s->library, s->library_name, &options);
}

static char **native_environment(const struct hints_search *s) {
    static const struct settings none;
    struct sbt_options options;
    return env_build("hints", environ, NULL, &none, NULL, s->library_name, &options);
}

static void visit(void *context, size_t variant, int run, struct trial *trial) {
    struct series_of *all = context;
    all->seconds[variant][run] = (double)trial->wall_ns / 1e9;
    all->n_made[variant]++;
    all->has_failed[variant] = all->has_failed[variant] || trial->timed_out || trial->status != all->search->status;
}

/* Nothing comes of a variant, if the first one has failed. */
static bool is_hopeless(const struct series_of *all, size_t variant, int run) {
    bool is_slow = variant > 0 && run >= HOPELESS_RUNS;
    for (int i = 0; i < run && is_slow; i++)
        is_slow = all->seconds[variant][i] > HOPELESS * all->seconds[0][i];
    return is_slow;
}

/* No more runs of what has failed, or cannot be the best: a candidate may be as slow as the time limit allows. */
static bool skips(void *context, size_t variant, int run) {
    const struct series_of *all = context;
    return (all->drops_slow && all->has_failed[0]) || all->has_failed[variant] || all->n_made[variant] < run ||
           (all->drops_slow && is_hopeless(all, variant, run));
}

static void add_variant(struct series_of *all, const char *label, char **env) {
    all->labels[all->n] = label;
    all->envps[all->n] = env;
    all->seconds[all->n++] = cmd_allocate((size_t)all->search->n_runs, sizeof **all->seconds);
}

static void measure(struct series_of *all, const char *prefix) {
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

static void free_series(struct series_of *all) {
    for (size_t i = 0; i < all->n; i++) {
        free(all->seconds[i]);
        free((void *)(uintptr_t)all->envps[i]);
    }
}

/* ---- the first run ---- */

struct largest {
    const char *folder;
    char *path; /* NULL: none */
    off_t bytes;
};

static void take_largest(void *context, int directory, const char *name) {
    struct largest *l = context;
    struct stat st;
    if (fstatat(directory, name, &st, 0) != 0 || (l->path != NULL && st.st_size <= l->bytes))
        return;
    free(l->path);
    l->path = cmd_format("%s/%s", l->folder, name);
    l->bytes = st.st_size;
}

/*
 * A run with a log, and with that hint file; NULL: none. A run may have several processes: hints are for the one with
 * the longest log. The sites of the profile before stay: candidates are among them.
 */
static void profile(struct hints_search *s, const char *hints) {
    char outcome[32], *log = cmd_format("%s/log", s->folder), **env = environment(s, hints, log);
    struct trial trial = trial_run(&s->program, env);
    struct largest largest = {.folder = s->folder};
    s->status = trial.status;
    if (trial.timed_out || !WIFEXITED(trial.status) || WEXITSTATUS(trial.status) != 0)
        cmd_refuse("hints: under the engine det the program ends with %s (legal: one that ends with exit 0, within "
                   "--timeout)",
                   trial_outcome(&trial, outcome));
    folder_visit("log", take_largest, &largest);
    if (largest.path == NULL)
        cmd_refuse("hints: the program does not synchronize (legal: one with threads)");
    s->profiles = cmd_reallocate(s->profiles, s->n_profiles + 1, sizeof *s->profiles);
    if (s->n_profiles == 0 && s->program.timeout_ns > LIMIT * trial.wall_ns + LIMIT_MORE_NS)
        s->program.timeout_ns = LIMIT * trial.wall_ns + LIMIT_MORE_NS;
    s->profiles[s->n_profiles++] = hints_profile("hints", largest.path);
    folder_remove_files("log");
    trial_release(&trial);
    free(largest.path);
    free(log);
    free(env);
}

const struct hints_profile *hints_last_profile(const struct hints_search *s) {
    return &s->profiles[s->n_profiles - 1];
}

/* ---- candidates ---- */

/* The time without over the time with it; NaN: a run has failed. */
static double ratio_of(const struct series_of *all, size_t variant) {
    if (all->has_failed[0] || all->has_failed[variant])
        return NAN;
    return stats_ratio(all->seconds[0], all->seconds[variant], (size_t)all->n_made[variant]).median;
}

static bool helps(const struct series_of *all, size_t base, size_t variant) {
    const double *without = all->seconds[base], *with = all->seconds[variant];
    int n = all->search->n_runs, n_faster = 0;
    for (int i = 0; i < n; i++)
        n_faster += with[i] < without[i];
    return !all->has_failed[base] && !all->has_failed[variant] && all->n_made[variant] == n && n_faster >= MOSTLY * n &&
           stats_ratio(without, with, (size_t)n).median > HELPS;
}

static const char *write_file(const struct hints_search *s, const char *name, const struct hints_candidate *more) {
    char *path = cmd_format("%s/%s", s->folder, name);
    FILE *file = fopen(path, "we");
    if (file != NULL)
        hints_write(file, s, more, false);
    if (file == NULL || fclose(file) != 0)
        cmd_refuse("hints: '%s' cannot be written (legal: TMPDIR, a folder with room)", path);
    return path;
}

const char *hints_kind_label(enum hints_kind kind) {
    static const char *const labels[HINTS_KINDS] = {"give-up-turn", "soft-barrier", "keep-turn"};
    return labels[kind];
}

/* What is lost while threads compute, and while the turn is passed on, is mended by other kinds. */
static bool is_worth(const struct hints_search *s, const struct hints_site *site, enum hints_kind kind) {
    double lost = kind == HINTS_KEEP ? site->passed_ns : site->lost_ns;
    return lost > hints_last_profile(s)->lost_ns * WORTH && (kind != HINTS_BARRIER || site->n_threads > 1);
}

/* Of the candidates from `first` on. */
static size_t best_of(const struct series_of *all, struct hints_candidate *first, size_t n) {
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        first[i].ratio = ratio_of(all, i + 1);
        if (isnan(first[best].ratio) || first[i].ratio > first[best].ratio) /* a candidate has failed */
            best = i;
    }
    return best;
}

/* True: a hint there is kept. */
static bool try_site(struct hints_search *s, const struct hints_site *site, const char *prefix) {
    struct series_of all = {.search = s, .drops_slow = true};
    struct hints_candidate *first;
    size_t n = 0;
    s->tried = cmd_reallocate(s->tried, s->n_tried + HINTS_KINDS, sizeof *s->tried);
    first = &s->tried[s->n_tried];
    add_variant(&all, "the hints so far", environment(s, write_file(s, "so-far", NULL), NULL));
    for (int kind = 0; kind < HINTS_KINDS; kind++) {
        const char *label = hints_kind_label((enum hints_kind)kind);
        if (!is_worth(s, site, (enum hints_kind)kind))
            continue;
        first[n] = (struct hints_candidate){.site = site, .kind = (enum hints_kind)kind};
        add_variant(&all, label, environment(s, write_file(s, label, &first[n]), NULL));
        n++;
    }
    measure(&all, prefix);
    size_t best = best_of(&all, first, n);
    bool is_kept = first[best].is_kept = helps(&all, 0, best + 1);
    s->n_tried += n;
    free_series(&all);
    return is_kept;
}

static bool is_tried(const struct hints_search *s, const struct hints_site *site) {
    for (size_t i = 0; i < s->n_tried; i++)
        if (strcmp(s->tried[i].site->name, site->name) == 0)
            return true;
    return false;
}

/* The call site for which most was lost in the last profile, of those that have not been tried; NULL: none is worth it.
 */
static const struct hints_site *next_site(const struct hints_search *s) {
    const struct hints_profile *p = hints_last_profile(s);
    for (size_t i = 0; i < p->n_sites; i++)
        if (!is_tried(s, &p->sites[i]) &&
            (is_worth(s, &p->sites[i], HINTS_GIVE_UP) || is_worth(s, &p->sites[i], HINTS_KEEP)))
            return &p->sites[i];
    return NULL;
}

/* Of the runs that were made: a variant that has failed is not run again. */
static struct stats stats_of_made(const struct series_of *all, size_t variant) {
    size_t n = (size_t)all->n_made[variant];
    return n != 0 ? stats_of(all->seconds[variant], n) : (struct stats){.median = NAN};
}

/* Without the library, without hints, and with all that are kept: together they have to be of use once more. */
static void measure_all(struct hints_search *s) {
    struct series_of all = {.search = s};
    bool has_hints = false;
    for (size_t i = 0; i < s->n_tried; i++)
        has_hints = has_hints || s->tried[i].is_kept;
    add_variant(&all, "without the library", native_environment(s));
    add_variant(&all, "without hints", environment(s, NULL, NULL));
    if (has_hints)
        add_variant(&all, "with hints", environment(s, write_file(s, "all", NULL), NULL));
    measure(&all, "at last, ");
    s->native = stats_of_made(&all, 0);
    s->without = stats_of_made(&all, 1);
    s->with = has_hints ? stats_of_made(&all, 2) : (struct stats){.median = NAN};
    s->is_of_use = has_hints && helps(&all, 1, 2);
    for (size_t i = 0; i < s->n_tried && !s->is_of_use; i++)
        s->tried[i].is_kept = false;
    free_series(&all);
}

void hints_search_run(struct hints_search *s) {
    s->folder = folder_make("hints");
    const struct hints_site *site;
    profile(s, NULL);
    for (size_t i = 1; i <= s->n_most && (site = next_site(s)) != NULL; i++) {
        char *prefix = cmd_format("call site %zu of %zu at most, %s, ", i, s->n_most, site->place);
        if (try_site(s, site, prefix)) /* what is lost then is lost elsewhere */
            profile(s, write_file(s, "so-far", NULL));
        free(prefix);
    }
    measure_all(s);
    folder_remove();
}
