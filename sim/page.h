/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An application's objects by their numbers, in pages. */
#ifndef SIM_PAGE_H
#define SIM_PAGE_H

#include "chip.h"

enum { SIM_PAGE_OBJECTS = 256 };

struct sim_page {
    uint32_t n_dead;
    struct sim_object object[SIM_PAGE_OBJECTS];
};

/* Stands for a page that was given back after all its objects were destroyed. */
extern struct sim_page sim_page_forgotten;

/*
 * An unused object, or an object that has gone, comes to life. NULL: the run has failed, because there is no memory or
 * no object with that number.
 */
struct sim_object *sim_page_revive(struct sim *sim, struct sim_app *app, uint32_t number);

/* NULL: there is no such object, or it is unused or has gone. */
static inline struct sim_object *sim_page_living(const struct sim_app *app, uint32_t number) {
    struct sim_page *page = number < app->n_objects ? app->pages[number / SIM_PAGE_OBJECTS] : NULL;
    if (page == NULL || page == &sim_page_forgotten || page->object[number % SIM_PAGE_OBJECTS].dead)
        return NULL;
    return &page->object[number % SIM_PAGE_OBJECTS];
}

/* The object of a call. NULL: the run has failed, as above. */
static inline struct sim_object *sim_page_object(struct sim *sim, struct sim_app *app, uint32_t number) {
    struct sim_object *o = sim_page_living(app, number);
    return o != NULL ? o : sim_page_revive(sim, app, number);
}

/* An object that names this thread as its owner; NULL: none does. */
struct sim_object *sim_page_owned_by(struct sim_thread *t);
/* It is to go as soon as it is idle, and no call uses it. If it is idle, this thread destroys it. */
void sim_page_left_doomed(struct sim *sim, struct sim_thread *t, struct sim_object *o);

/* A call that used the object has ended. */
static inline void sim_page_left(struct sim *sim, struct sim_thread *t, struct sim_object *o) {
    if (__builtin_expect(--o->n_calls == 0 && o->doomed, 0))
        sim_page_left_doomed(sim, t, o);
}

void sim_page_free_all(struct sim_app *app);

#endif
