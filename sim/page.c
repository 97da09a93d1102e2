/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An application's objects. A page exists from the first use of one of its objects to the end of the last. So a program
 * that makes and destroys objects all the time does not need more and more memory.
 *
 * Lock order is free. So other threads may hold, want or wait for an object at the point where the trace destroys it:
 * it goes when it is idle. Still other threads may come after that. For them the object comes to life again, with what
 * its page still knows of it. If the page was given back they get a new page, with objects marked `forgotten`. A
 * forgotten object lets every thread pass: with what it knows it could only keep the thread waiting.
 */
#include "page.h"

#include "broadcast.h"
#include "primitive.h"

static bool in_use(const struct sim_object *o) {
    return o->n_calls != 0 || o->owner != NULL || (o->n_inside != 0 && o->kind != SBT_TRACE_SEM) ||
           o->waiters.first != NULL || o->queued.first != NULL || o->gated.first != NULL;
}

struct sim_page sim_page_forgotten;

static struct sim_page *new_page(struct sim *sim, const struct sim_app *app, uint32_t first, bool again) {
    struct sim_page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    page->n_dead = again ? SIM_PAGE_OBJECTS : 0;
    for (uint32_t i = 0; i < SIM_PAGE_OBJECTS; i++) {
        struct sim_object *o = &page->object[i];
        o->number = first + i;
        o->application = (uint16_t)app->number;
        o->dead = o->forgotten = again;
    }
    return page;
}

struct sim_object *sim_page_revive(struct sim *sim, struct sim_app *app, uint32_t number) {
    if (number >= app->n_objects) {
        sim_fail(sim, SIM_DAMAGED, "%s: object %u, and there are %u", app->result.name, number, app->n_objects);
        return NULL;
    }
    struct sim_page **page = &app->pages[number / SIM_PAGE_OBJECTS];
    if (*page == NULL || *page == &sim_page_forgotten) {
        *page = new_page(sim, app, number / SIM_PAGE_OBJECTS * SIM_PAGE_OBJECTS, *page == &sim_page_forgotten);
        if (*page == NULL)
            return NULL;
    }
    struct sim_object *o = &(*page)->object[number % SIM_PAGE_OBJECTS];
    if (o->dead) { /* a thread is late: the object lives until it is idle again */
        o->dead = false;
        o->doomed = true;
        (*page)->n_dead--;
    }
    return o;
}

/* The search goes on where it last ended. So a thread that gives back all that it owns goes through the pages once. */
struct sim_object *sim_page_owned_by(struct sim_thread *t) {
    const struct sim_app *app = t->app;
    uint32_t n_pages = (app->n_objects + SIM_PAGE_OBJECTS - 1) / SIM_PAGE_OBJECTS;
    for (uint32_t n = 0; t->n_owned > 0 && n < n_pages; n++) {
        struct sim_page *page = app->pages[t->owned_page];
        for (uint32_t k = 0; page != NULL && k < SIM_PAGE_OBJECTS; k++)
            if (page->object[k].owner == t)
                return &page->object[k];
        t->owned_page = t->owned_page + 1 < n_pages ? t->owned_page + 1 : 0;
    }
    return NULL;
}

static bool is_condition(const struct sim_object *o) {
    return o->kind == SBT_TRACE_COND;
}

static void free_page(struct sim_page *page) {
    if (page == &sim_page_forgotten)
        return;
    for (uint32_t i = 0; i < SIM_PAGE_OBJECTS; i++) {
        if (is_condition(&page->object[i]))
            sim_exchange_free(page->object[i].exchange);
        free(page->object[i].signals.window);
    }
    free(page);
}

static uint64_t exchanged_in(const struct sim_page *page) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < SIM_PAGE_OBJECTS; i++)
        if (is_condition(&page->object[i]) && page->object[i].exchange != NULL)
            n += page->object[i].exchange->n;
    return n;
}

void sim_page_left_doomed(struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    struct sim_page **page = &t->app->pages[o->number / SIM_PAGE_OBJECTS];
    if (in_use(o))
        return;
    if (o->channel != NULL)
        sim_broadcast_forget(sim, o);
    o->without_channel = false;
    if (sim_object_has_id(o) && !o->evicted)
        sim_primitive_give_back(sim, t, o, o->id);
    if (sim_object_has_id(o))
        o->id = 0;
    o->evicted = o->doomed = false;
    o->dead = true;
    if (++(*page)->n_dead == SIM_PAGE_OBJECTS) {
        sim->n_exchanged -= exchanged_in(*page);
        free_page(*page);
        *page = &sim_page_forgotten;
    }
}

void sim_page_free_all(struct sim_app *app) {
    for (uint32_t i = 0; app->pages != NULL && i < (app->n_objects + SIM_PAGE_OBJECTS - 1) / SIM_PAGE_OBJECTS; i++)
        if (app->pages[i] != NULL)
            free_page(app->pages[i]);
    free(app->pages);
    app->pages = NULL;
}
