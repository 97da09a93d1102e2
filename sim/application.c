/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "application.h"

#include "page.h"
#include "survey.h"

/* Read when each thread began, by its first event, and which threads were created by another thread. */
static void read_begins(struct sim_app *app, uint8_t *created) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    struct sbt_trace_error damage; /* ignored: the replay finds it again */
    for (uint32_t i = 0; i < app->n_threads; i++) {
        sbt_trace_cursor_begin(app->trace, i, &cursor);
        app->begins[i] = UINT64_MAX;
        for (bool first = true; sbt_trace_next(&cursor, &event, &damage) > 0; first = false) {
            if (first && !sbt_trace_still_runs(&event))
                app->begins[i] = event.at_ns > event.work_ns ? event.at_ns - event.work_ns : 0;
            if (event.op == SBT_TRACE_THREAD_CREATE && event.other < app->n_threads)
                created[event.other] = 1;
        }
    }
    for (uint32_t i = 0; i < app->n_threads; i++)
        if (i == 0 || created[i])
            app->begins[i] = UINT64_MAX;
}

/*
 * A killed program may not have written that it created a thread. Then the thread begins at its time in the trace.
 * False: no memory.
 */
static bool find_begins(const struct sim *sim, struct sim_app *app) {
    app->begins = calloc(app->n_threads, sizeof *app->begins);
    uint8_t *created = calloc(app->n_threads, 1);
    bool ok = app->begins != NULL && created != NULL;
    const struct sim_app *same = sim->apps;
    while (same->trace != app->trace)
        same++;
    if (ok && same == app)
        read_begins(app, created);
    else if (ok) /* the same trace was read before */
        memcpy(app->begins, same->begins, app->n_threads * sizeof *app->begins);
    free(created);
    return ok;
}

static uint64_t n_pages(const struct sim_app *app) {
    return (app->n_objects + (uint64_t)SIM_PAGE_OBJECTS - 1) / SIM_PAGE_OBJECTS;
}

/* For each thread, besides the tables that have its size: at most three pointers, in threads, ended and begins. */
enum { THREAD_TABLE_BYTES = 24 };

static bool get_tables(struct sim_app *app) {
    size_t n = app->n_threads;
    app->pages = calloc(n_pages(app), sizeof(struct sim_page *));
    app->threads = calloc(n, sizeof(struct sim_thread *));
    app->results = calloc(n, sizeof *app->results);
    app->joiners = calloc(n, sizeof *app->joiners);
    app->ended = calloc(n, sizeof *app->ended);
    return (app->pages != NULL || app->n_objects == 0) && app->threads != NULL && app->results != NULL &&
           app->joiners != NULL && app->ended != NULL;
}

/* From the survey, or from a walk of its own, which does not find broadcasts. False: no memory. */
static bool get_survey(const struct sim *sim, struct sim_app *app, const struct sim_survey *survey) {
    if (survey == NULL)
        return sbt_trace_info(app->trace)->whole || find_begins(sim, app);
    app->begins = calloc(app->n_threads, sizeof *app->begins);
    if (app->begins != NULL)
        memcpy(app->begins, survey->begins, app->n_threads * sizeof *app->begins);
    bool exchanges = sim->host != NULL && !sim->config.recorded_order;
    return app->begins != NULL && (!exchanges || (sim_ranges_copy(&app->broadcasts, &survey->broadcasts) &&
                                                  sim_earliest_copy(&app->earliest, &survey->earliest)));
}

enum sim_status sim_add(struct sim *sim, const struct sbt_trace *trace, const char *name, struct sim_error *error) {
    return sim_add_surveyed(sim, trace, NULL, name, error);
}

enum sim_status sim_add_surveyed(struct sim *sim, const struct sbt_trace *trace, const struct sim_survey *survey,
                                 const char *name, struct sim_error *error) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct sbt_trace_cursor first;
    struct sbt_trace_event event;
    struct sbt_trace_error damage;
    if (sim->n_apps == SIM_MAX_APPLICATIONS)
        return sim_refuse(error, SIM_USAGE, "more than %d applications", SIM_MAX_APPLICATIONS);
    if (info->n_threads == 0 || info->n_events == 0)
        return sim_refuse(error, SIM_USAGE, "%s: an empty trace", name);
    sbt_trace_cursor_begin(trace, 0, &first);
    int r = sbt_trace_next(&first, &event, &damage);
    if (r < 0)
        return sim_refuse(error, SIM_DAMAGED, "%s: at byte %ju: %s", name, (uintmax_t)damage.offset, damage.reason);
    if (r == 0 && info->whole && survey == NULL)
        return sim_refuse(error, SIM_USAGE, "%s: an empty trace: its first thread does nothing", name);
    struct sim_app *app = &sim->apps[sim->n_apps++];
    *app = (struct sim_app){
        .trace = trace, .n_threads = info->n_threads, .n_objects = info->n_objects, .number = sim->n_apps - 1};
    app->result.name = name;
    if (!get_tables(app) || !get_survey(sim, app, survey))
        return sim_refuse(error, SIM_NO_MEMORY, "%s: out of memory", name);
    return SIM_OK;
}

uint64_t sim_memory_bytes(const struct sim *sim) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->n_apps; i++) {
        const struct sim_app *app = &sim->apps[i];
        sum += app->n_threads *
               (sizeof(struct sim_thread) + sizeof *app->results + sizeof *app->joiners + THREAD_TABLE_BYTES);
        sum += n_pages(app) * (sizeof(struct sim_page) + sizeof(void *));
    }
    return sum;
}

void sim_application_trim(struct sim_app *app) {
    for (uint32_t i = 0; app->threads != NULL && i < app->n_threads; i++)
        free(app->threads[i]);
    for (struct sim_thread *t; (t = sim_list_shift(&app->late)) != NULL;)
        free(t);
    sim_page_free_all(app);
    free(app->threads);
    free(app->joiners);
    free(app->begins);
    free(app->broadcasts.range);
    free(app->earliest.entry);
    app->threads = NULL;
    app->joiners = NULL;
    app->begins = NULL;
    app->broadcasts.range = NULL;
    app->earliest.entry = NULL;
}

void sim_application_free(struct sim_app *app) {
    sim_application_trim(app);
    free(app->results);
    free(app->ended);
}
