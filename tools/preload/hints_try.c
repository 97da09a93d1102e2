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

/* A call site is tried if so large a part of all time that was lost was lost for it. */
#define WORTH 0.01
/* A run may last so many times as long as the first one, and that much longer. Then it counts as failed. */
#define LIMIT 10
#define LIMIT_MORE_NS INT64_C(10000000000)

static char **native_environment(const struct hints_search *s) {
    static const struct settings none;
    struct sbt_options options;
    return env_build("hints", environ, NULL, &none, NULL, s->library_name, &options);
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

static void refuse(const struct trial *trial) {
    char outcome[32];
    cmd_refuse(
        "hints: under the engine det the program ends with %s (legal: one that ends with exit 0, within --timeout)",
        trial_outcome(trial, outcome));
}

/*
 * A run may have several processes: hints are for the one with the longest log. The sites of the profile before stay:
 * candidates are among them.
 */
bool hints_run_profile(struct hints_search *s, const char *hints) {
    char *log = cmd_format("%s/log", s->folder), **env = hints_environment(s, hints, log);
    struct trial trial = trial_run(&s->program, env);
    struct largest largest = {.folder = s->folder};
    bool is_first = s->n_profiles == 0;
    bool has_ended = !trial.timed_out && WIFEXITED(trial.status) && WEXITSTATUS(trial.status) == 0;
    if (is_first && !has_ended)
        refuse(&trial);
    folder_visit("log", take_largest, &largest);
    if (is_first && largest.path == NULL)
        cmd_refuse("hints: the program does not synchronize (legal: one with threads)");
    if (is_first)
        s->status = trial.status;
    if (is_first && s->program.timeout_ns > LIMIT * trial.wall_ns + LIMIT_MORE_NS)
        s->program.timeout_ns = LIMIT * trial.wall_ns + LIMIT_MORE_NS;
    has_ended = has_ended && largest.path != NULL;
    if (has_ended) {
        s->profiles = cmd_reallocate(s->profiles, s->n_profiles + 1, sizeof *s->profiles);
        s->profiles[s->n_profiles++] = hints_profile("hints", largest.path);
    }
    folder_remove_files("log");
    trial_release(&trial);
    free(largest.path);
    free(log);
    free(env);
    return has_ended;
}

const struct hints_profile *hints_last_profile(const struct hints_search *s) {
    return &s->profiles[s->n_profiles - 1];
}

/* ---- candidates ---- */

const char *hints_write_file(const struct hints_search *s, const char *name, const struct hints_more *more) {
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

/* True: a hint there is kept. */
static bool try_site(struct hints_search *s, const struct hints_site *site, const char *prefix) {
    struct hints_series all = {.search = s, .drops_slow = true};
    struct hints_candidate *first;
    size_t n = 0;
    s->tried = cmd_reallocate(s->tried, s->n_tried + HINTS_KINDS, sizeof *s->tried);
    first = &s->tried[s->n_tried];
    hints_add_variant(&all, "the hints so far", hints_environment(s, hints_write_file(s, "so-far", NULL), NULL));
    for (int kind = 0; kind < HINTS_KINDS; kind++) {
        const char *label = hints_kind_label((enum hints_kind)kind);
        if (!is_worth(s, site, (enum hints_kind)kind))
            continue;
        first[n] = (struct hints_candidate){.site = site, .kind = (enum hints_kind)kind};
        hints_add_variant(&all, label,
                          hints_environment(s, hints_write_file(s, label, &(struct hints_more){&first[n], 1}), NULL));
        n++;
    }
    hints_measure(&all, prefix);
    char *again = cmd_format("%sagain, ", prefix);
    size_t chosen = hints_choose(&all, again);
    free(again);
    for (size_t i = 0; i < n; i++) {
        first[i].ratio = hints_ratio_of(&all, i + 1);
        first[i].is_kept = chosen == i + 1;
    }
    s->n_tried += n;
    hints_free_series(&all);
    return chosen > 0;
}

static bool is_tried(const struct hints_search *s, const struct hints_site *site) {
    for (size_t i = s->first_tried; i < s->n_tried; i++)
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
static struct stats stats_of_made(const struct hints_series *all, size_t variant) {
    size_t n = (size_t)all->n_made[variant];
    return n != 0 ? stats_of(all->seconds[variant], n) : (struct stats){.median = NAN};
}

/* Without the library, without hints, and with all that are kept: together they have to be of use once more. */
static void measure_all(struct hints_search *s) {
    struct hints_series all = {.search = s};
    bool has_hints = false;
    for (size_t i = 0; i < s->n_tried; i++)
        has_hints = has_hints || s->tried[i].is_kept;
    hints_add_variant(&all, "without the library", native_environment(s));
    hints_add_variant(&all, "without hints", hints_environment(s, NULL, NULL));
    if (has_hints)
        hints_add_variant(&all, "with hints", hints_environment(s, hints_write_file(s, "all", NULL), NULL));
    all.base = 1;
    hints_measure(&all, "at last, ");
    s->is_of_use = hints_choose(&all, "at last, again, ") > 0;
    s->native = stats_of_made(&all, 0);
    s->without = stats_of_made(&all, 1);
    s->with = has_hints ? stats_of_made(&all, 2) : (struct stats){.median = NAN};
    for (size_t i = 0; i < s->n_sets && !s->is_of_use; i++)
        s->sets[i].is_kept = false;
    for (size_t i = 0; i < s->n_tried && !s->is_of_use; i++)
        s->tried[i].is_kept = false;
    hints_free_series(&all);
}

/* One hint after the other. */
static void search(struct hints_search *s) {
    const struct hints_site *site;
    for (size_t i = 1; i <= s->n_most && (site = next_site(s)) != NULL; i++) {
        char *prefix = cmd_format("call site %zu of %zu at most, %s, ", i, s->n_most, site->place);
        if (try_site(s, site, prefix)) /* what is lost then is lost elsewhere */
            hints_run_profile(s, hints_write_file(s, "so-far", NULL));
        free(prefix);
    }
}

void hints_search_run(struct hints_search *s) {
    s->folder = folder_make("hints");
    hints_run_profile(s, NULL);
    search(s);
    if (hints_plan(s))
        search(s);
    measure_all(s);
    folder_remove();
}
