/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sets of hints. A hint alone may be no help where many are: if locks are taken by one function for all, a turn that is
 * kept behind one of its callers is given to the same threads behind the next one.
 *
 * How long threads compute after a call is measured in a run in which every call keeps the turn: threads do not wait
 * for each other's turns then, nor for a core. After short computations the turn is kept, after long ones it is given
 * up. What is short and long enough is tried.
 */
#include <stdlib.h>
#include <string.h>

#include "hints_read.h"
#include "hints_try.h"

/* Call sites with so small a part of all operations, or of all that is computed, are not worth a hint. */
#define FEW_OPS 0.001
#define FEW_NS 0.003
/* Hints of a set at most. */
enum { SET_MOST = 200, VERY_LONG_NS = 100000 };

/* What is tried: whether to keep the turn, and from what on to give it up (0: not). */
static const struct {
    bool keeps;
    double long_ns;
} plans[HINTS_SETS] = {
    {true, HINTS_LONG_NS}, {true, VERY_LONG_NS}, {false, HINTS_LONG_NS}, {false, VERY_LONG_NS}, {true, 0}};

/* As hint files have it: each call once, without callers. */
static struct hints_more keep_all(const struct hints_profile *p) {
    struct hints_more all = {.list = cmd_allocate(HINTS_MAX / 2, sizeof *all.list)};
    for (size_t i = 0; i < p->n_sites && all.n < HINTS_MAX / 2; i++) {
        bool is_known = false;
        for (size_t k = 0; k < all.n && !is_known; k++)
            is_known = strcmp(all.list[k].site->calls[0], p->sites[i].calls[0]) == 0;
        if (!is_known)
            all.list[all.n++] = (struct hints_candidate){.site = &p->sites[i], .kind = HINTS_KEEP};
    }
    return all;
}

/* Each of them as a site of its own, without callers. */
static struct hints_site *without_callers(struct hints_more *all) {
    struct hints_site *sites = cmd_allocate(all->n + 1, sizeof *sites);
    for (size_t i = 0; i < all->n; i++) {
        sites[i] = *all->list[i].site;
        sites[i].n_calls = 1;
        all->list[i].site = &sites[i];
    }
    return sites;
}

/* What has been kept is in no file of that one. */
static struct hints_search without_kept(const struct hints_search *s) {
    struct hints_search alone = *s;
    alone.n_tried = 0;
    return alone;
}

/* A profile with each turn kept; NULL: the run has failed. The last profile stays the last. */
static const struct hints_profile *profile_computing(struct hints_search *s) {
    const struct hints_search alone = without_kept(s);
    struct hints_more all = keep_all(hints_last_profile(s));
    struct hints_site *sites = without_callers(&all);
    bool has_ended = hints_run_profile(s, hints_write_file(&alone, "keep-all", &all));
    free(sites);
    free(all.list);
    if (!has_ended)
        return NULL;
    struct hints_profile last = s->profiles[s->n_profiles - 1];
    s->profiles[s->n_profiles - 1] = s->profiles[s->n_profiles - 2];
    s->profiles[s->n_profiles - 2] = last;
    return &s->profiles[s->n_profiles - 2];
}

static double all_computing(const struct hints_profile *p) {
    double ns = 0;
    for (size_t i = 0; i < p->n_sites; i++)
        ns += p->sites[i].typical_ns * (double)p->sites[i].n;
    return ns;
}

static struct hints_more set_of(const struct hints_profile *p, size_t plan, struct hints_set *set) {
    struct hints_more more = {.list = cmd_allocate(SET_MOST, sizeof *more.list)};
    double computing = all_computing(p);
    for (size_t i = 0; i < p->n_sites && more.n < SET_MOST; i++) {
        const struct hints_site *site = &p->sites[i];
        double typical = site->typical_ns, n = (double)site->n;
        bool keeps = plans[plan].keeps && typical < HINTS_SHORT_NS && n > FEW_OPS * (double)p->n_ops;
        bool gives = plans[plan].long_ns != 0 && typical >= plans[plan].long_ns && typical * n > FEW_NS * computing;
        if (!keeps && !gives)
            continue;
        enum hints_kind kind = keeps ? HINTS_KEEP : HINTS_GIVE_UP;
        set->n_kinds[kind]++;
        more.list[more.n++] = (struct hints_candidate){.site = site, .kind = kind, .is_kept = true, .in_set = true};
    }
    return more;
}

/* One that is another one, or has one hint only, which is tried alone, is not worth its runs. */
static bool is_new(const struct hints_search *s, const struct hints_set *set, size_t n) {
    for (size_t i = 0; i < s->n_sets; i++)
        if (memcmp(s->sets[i].n_kinds, set->n_kinds, sizeof set->n_kinds) == 0)
            return false;
    return n > 1;
}

static void keep_set(struct hints_search *s, const struct hints_more *set, double ratio) {
    for (size_t i = 0; i < s->n_tried; i++)
        s->tried[i].is_kept = false;
    s->first_tried = s->n_tried;
    s->tried = cmd_reallocate(s->tried, s->n_tried + set->n, sizeof *s->tried);
    for (size_t i = 0; i < set->n; i++) {
        s->tried[s->n_tried] = set->list[i];
        s->tried[s->n_tried++].ratio = ratio;
    }
}

/* Each set alone, without what has been kept before. */
static void add_sets(struct hints_series *all, const struct hints_profile *p, struct hints_more *more) {
    static const char *const labels[HINTS_SETS] = {"set 1", "set 2", "set 3", "set 4", "set 5"};
    struct hints_search *s = all->search;
    const struct hints_search alone = without_kept(s);
    for (size_t i = 0; i < HINTS_SETS; i++) {
        struct hints_set set = {.n_kinds = {0}};
        const char *label = labels[s->n_sets];
        struct hints_more *m = &more[s->n_sets];
        *m = set_of(p, i, &set);
        if (is_new(s, &set, m->n)) {
            hints_add_variant(all, label, hints_environment(s, hints_write_file(&alone, label, m), NULL));
            s->sets[s->n_sets++] = set;
        } else {
            free(m->list);
        }
    }
}

bool hints_plan(struct hints_search *s) {
    struct hints_series all = {.search = s, .drops_slow = true};
    struct hints_more more[HINTS_SETS];
    const struct hints_profile *p = profile_computing(s);
    if (p == NULL)
        return false;
    hints_add_variant(&all, "the hints so far", hints_environment(s, hints_write_file(s, "so-far", NULL), NULL));
    add_sets(&all, p, more);
    size_t chosen = 0;
    if (s->n_sets > 0) {
        hints_measure(&all, "sets of hints, ");
        chosen = hints_choose(&all, "sets of hints, again, ");
    }
    for (size_t i = 0; i < s->n_sets; i++)
        s->sets[i].ratio = hints_ratio_of(&all, i + 1);
    if (chosen > 0) {
        size_t best = chosen - 1;
        s->sets[best].is_kept = true;
        for (size_t i = 0; i < s->n_tried; i++)
            s->sets[best].replaces |= s->tried[i].is_kept;
        keep_set(s, &more[best], s->sets[best].ratio);
        hints_run_profile(s, hints_write_file(s, "so-far", NULL));
    }
    for (size_t i = 0; i < s->n_sets; i++)
        free(more[i].list);
    hints_free_series(&all);
    return chosen > 0;
}
