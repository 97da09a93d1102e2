/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects: a page of them is there from the first use of one to the end of the last, so a program that makes and
 * destroys objects all the time does not add up. For whoever comes after that there is a new page; its objects let all
 * pass that they would have to know something about to keep waiting (forgotten). And what both machines keep alike: who
 * holds a mutex and for how long, and which of a condition's signals have happened.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define MAX_GAP (UINT64_C(1) << 26) /* signals between the first that has not happened and the last that has */

static bool in_use(const struct sim_object *o) {
    return o->n_calls != 0 || o->owner != NULL || (o->n_inside != 0 && o->kind != SBT_TRACE_SEM) ||
           o->waiters.first != NULL || o->queued.first != NULL || o->gated.first != NULL;
}

struct sim_page sim_forgotten;

static struct sim_page *new_page(struct sim *sim, const struct sim_app *app, uint32_t first, bool again) {
    struct sim_page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    page->n_dead = again ? SIM_PAGE : 0;
    for (uint32_t i = 0; i < SIM_PAGE; i++) {
        struct sim_object *o = &page->object[i];
        o->number = first + i;
        o->application = (uint16_t)app->number;
        o->dead = o->forgotten = again;
    }
    return page;
}

struct sim_object *sim_object_again(struct sim *sim, struct sim_app *app, uint32_t number) {
    if (number >= app->n_objects) {
        sim_fail(sim, SIM_DAMAGED, "%s: object %u, and there are %u", app->result.name, number, app->n_objects);
        return NULL;
    }
    struct sim_page **page = &app->pages[number / SIM_PAGE];
    if (*page == NULL || *page == &sim_forgotten) {
        *page = new_page(sim, app, number / SIM_PAGE * SIM_PAGE, *page == &sim_forgotten);
        if (*page == NULL)
            return NULL;
    }
    struct sim_object *o = &(*page)->object[number % SIM_PAGE];
    if (o->dead) { /* somebody is late: it lives until it is idle again */
        o->dead = false;
        o->doomed = true;
        (*page)->n_dead--;
    }
    return o;
}

/* From where the last one was, so that who gives back all it has goes through them once. */
struct sim_object *sim_object_of(struct sim_thread *t) {
    const struct sim_app *app = t->app;
    uint32_t n_pages = (app->n_objects + SIM_PAGE - 1) / SIM_PAGE;
    for (uint32_t n = 0; t->n_owned > 0 && n < n_pages; n++) {
        struct sim_page *page = app->pages[t->owned_page];
        for (uint32_t k = 0; page != NULL && k < SIM_PAGE; k++)
            if (page->object[k].owner == t)
                return &page->object[k];
        t->owned_page = t->owned_page + 1 < n_pages ? t->owned_page + 1 : 0;
    }
    return NULL;
}

static void free_page(struct sim_page *page) {
    if (page == &sim_forgotten)
        return;
    for (uint32_t i = 0; i < SIM_PAGE; i++)
        free(page->object[i].window);
    free(page);
}

/*
 * Lock order is free, so others may hold, want or wait for what the trace sees destroyed: it goes when it is idle. And
 * others may come even later, when it has gone: then it is there again, with what its page still knows of it.
 */
void sim_object_left(struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    struct sim_page **page = &t->app->pages[o->number / SIM_PAGE];
    if (--o->n_calls != 0 || !o->doomed || in_use(o))
        return;
    if (sim_is_id(o->id) && !o->evicted)
        sim_give_back(sim, t, o, o->id);
    if (sim_is_id(o->id))
        o->id = 0;
    o->evicted = o->doomed = false;
    o->dead = true;
    if (++(*page)->n_dead == SIM_PAGE) {
        free_page(*page);
        *page = &sim_forgotten;
    }
}

void sim_objects_free(struct sim_app *app) {
    for (uint32_t i = 0; app->pages != NULL && i < (app->n_objects + SIM_PAGE - 1) / SIM_PAGE; i++)
        if (app->pages[i] != NULL)
            free_page(app->pages[i]);
    free(app->pages);
    app->pages = NULL;
}

/* ---- signals ---- */

static bool widen(struct sim *sim, struct sim_object *c, uint64_t gap) {
    uint32_t n = c->n_window == 0 ? 1 : c->n_window;
    while ((uint64_t)n * 64 < gap)
        n *= 2;
    uint64_t *window = calloc(n, sizeof *window);
    if (window == NULL) {
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
        return false;
    }
    for (uint64_t i = 1; i <= (uint64_t)c->n_window * 64; i++) { /* rings of different sizes */
        uint64_t k = c->below + i, bits = (uint64_t)c->n_window * 64;
        if (c->window[k % bits / 64] >> k % 64 & 1)
            window[k % ((uint64_t)n * 64) / 64] |= UINT64_C(1) << k % 64;
    }
    free(c->window);
    c->window = window;
    c->n_window = n;
    return true;
}

void sim_happened(struct sim *sim, struct sim_object *c, uint64_t number) {
    if (number <= c->below)
        return;
    uint64_t gap = number - c->below;
    if (gap > 1) {
        if (gap > MAX_GAP) {
            sim_fail(sim, SIM_DAMAGED, "condition %u: signal %ju, and %ju is the first that has not happened",
                     c->number, (uintmax_t)number, (uintmax_t)c->below + 1);
            return;
        }
        if (gap > (uint64_t)c->n_window * 64 && !widen(sim, c, gap))
            return;
        c->window[number % ((uint64_t)c->n_window * 64) / 64] |= UINT64_C(1) << number % 64;
        return;
    }
    c->below = number;
    for (uint64_t bits = (uint64_t)c->n_window * 64; bits != 0; c->below++) {
        uint64_t next = c->below + 1, *word = &c->window[next % bits / 64], bit = UINT64_C(1) << next % 64;
        if ((*word & bit) == 0)
            break;
        *word &= ~bit;
    }
}

bool sim_has_happened(const struct sim_object *c, uint64_t number) {
    if (number <= c->below || c->forgotten)
        return true;
    uint64_t bits = (uint64_t)c->n_window * 64;
    return number - c->below <= bits && (c->window[number % bits / 64] >> number % 64 & 1) != 0;
}

/* ---- critical sections ---- */

static uint32_t octave(uint64_t ns) {
    return ns == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(ns);
}

void sim_acquired(struct sim *sim, struct sim_thread *t, struct sim_object *m) {
    sim_own(m, t);
    m->n_inside = 1;
    m->since = sim_now(sim);
    sim_hold(sim, t);
    if (sim->config.on_grant != NULL &&
        !sim->config.on_grant(sim->config.context, m->application, m->number, t->number))
        sim_fail(sim, SIM_STOPPED, "stopped");
    if (!sim->config.recorded_order || t->uncounted)
        return;
    m->n_acquired = t->order > m->n_acquired ? t->order : m->n_acquired + 1;
    /* Whose turn it is now may ask, and will wait for us. */
    struct sim_list gated = m->gated;
    m->gated = (struct sim_list){0};
    for (struct sim_thread *g; (g = sim_shift(&gated)) != NULL;) {
        if (sim_is_early(sim, g, m))
            sim_append(&m->gated, g);
        else
            sim_wake(sim, g, 0);
    }
}

void sim_released(struct sim *sim, struct sim_thread *t, struct sim_object *m) {
    struct sim_thread *owner = m->owner; /* usually t; a program may do otherwise */
    uint64_t ns = sim_now(sim) - m->since;
    (void)t;
    if (sim->config.on_release != NULL)
        sim->config.on_release(sim->config.context, m->application, m->number, owner->number);
    sim_own(m, NULL);
    m->n_inside = 0;
    m->section_ns += ns;
    struct sim_sections *all = &owner->app->result.sections;
    all->n++;
    all->sum_ns += ns;
    all->max_ns = ns > all->max_ns ? ns : all->max_ns;
    all->n_in[octave(ns)]++;
    all->ns_in[octave(ns)] += ns;
    owner->result.n_sections++;
    owner->result.section_ns += ns;
    sim_unhold(sim, owner);
}

void sim_gate(struct sim *sim, struct sim_thread *t, struct sim_object *m, sim_then *open) {
    if (!sim_is_early(sim, t, m)) {
        open(sim, t);
        return;
    }
    sim_append(&m->gated, t);
    sim_wait(sim, t, SIM_WHY_TURN, open);
}
