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

/* The object of a call. NULL: the run has failed, as above. */
static inline struct sim_object *sim_page_object(struct sim *sim, struct sim_app *app, uint32_t number) {
    struct sim_page *page = number < app->n_objects ? app->pages[number / SIM_PAGE_OBJECTS] : NULL;
    if (page == NULL || page == &sim_page_forgotten || page->object[number % SIM_PAGE_OBJECTS].dead)
        return sim_page_revive(sim, app, number);
    return &page->object[number % SIM_PAGE_OBJECTS];
}

/* An object that names this thread as its owner; NULL: none does. */
struct sim_object *sim_page_owned_by(struct sim_thread *t);
/* A call that used the object has ended. If the object is to go now, this thread destroys it. */
void sim_page_left(struct sim *sim, struct sim_thread *t, struct sim_object *o);
void sim_page_free_all(struct sim_app *app);

#endif
