/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A chip, its applications, and the loop over events. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

const char *sim_sync_name(enum sim_sync sync) {
    static const char names[SIM_N_SYNCS][12] = {"software", "subutai"};
    return (uint32_t)sync < SIM_N_SYNCS ? names[sync] : "?";
}

struct sim_config sim_config_default(void) {
    return (struct sim_config){.width = 8,
                               .height = 8,
                               .sync = SIM_SUBUTAI,
                               .sched = csa_config_default(),
                               .migrate = true,
                               .costs = sim_costs_default(),
                               .timing = hw_timing_default(),
                               .n_control = HW_DEFAULT_CONTROL,
                               .n_queue = HW_DEFAULT_QUEUE,
                               .evict = true,
                               .seed = 1};
}

void sim_fail(struct sim *sim, enum sim_status status, const char *format, ...) {
    if (sim->status != SIM_OK)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(sim->error.text, sizeof sim->error.text, format, list);
    va_end(list);
    sim->status = status;
}

static enum sim_status say(struct sim_error *error, enum sim_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum sim_status say(struct sim_error *error, enum sim_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return status;
}

/* ---- a chip ---- */

static bool is_legal(const struct sim_config *c, struct sim_error *error) {
    if (c->width < 1 || c->height < 1 || c->width > HW_MESH_MAX_SIDE || c->height > HW_MESH_MAX_SIDE)
        say(error, SIM_USAGE, "a mesh of %ux%u (legal: 1x1 to %dx%d)", c->width, c->height, HW_MESH_MAX_SIDE,
            HW_MESH_MAX_SIDE);
    else if ((uint32_t)c->sync >= SIM_N_SYNCS || (uint32_t)c->sched.policy >= CSA_N_POLICIES)
        say(error, SIM_USAGE, "unknown synchronization or policy");
    else if (c->n_cores > c->width * c->height)
        say(error, SIM_USAGE, "%u cores on a mesh of %ux%u", c->n_cores, c->width, c->height);
    else if (c->sched.slot_ns <= c->costs.switch_ns) /* nobody would ever work */
        say(error, SIM_USAGE, "a time slot of %ju ns, of which a core needs %u to go on with another thread",
            (uintmax_t)c->sched.slot_ns, c->costs.switch_ns);
    else if (c->load_permille > 900)
        say(error, SIM_USAGE, "a data load of %u (legal: 0 to 900)", c->load_permille);
    else if (c->n_control < 1 || c->n_control > HW_MAX_CONTROL || c->n_queue < 1 ||
             hw_spm_n_bytes(c->n_control, c->n_queue) > HW_MAX_SPM_BYTES)
        say(error, SIM_USAGE, "no scratchpad has %u control and %u queue elements", c->n_control, c->n_queue);
    else
        return true;
    return false;
}

struct sim *sim_new(const struct sim_config *config, struct sim_error *error) {
    if (!is_legal(config, error))
        return NULL;
    struct sim *sim = calloc(1, sizeof *sim);
    bool ok = sim != NULL;
    if (ok) {
        sim->config = *config;
        sim->n_cores = config->n_cores != 0 ? config->n_cores : config->width * config->height;
        sim->cores = sim_zeroed(sim->n_cores * sizeof *sim->cores);
        sim->by_id = calloc(SIM_MAX_THREADS + 2, sizeof(struct sim_thread *));
        sim->free_ids = calloc(SIM_MAX_THREADS, sizeof *sim->free_ids);
        sim->latency = calloc(SIM_N_CALLS, sizeof *sim->latency);
        sim->apps = calloc(SIM_MAX_APPLICATIONS, sizeof *sim->apps);
        ok = sim->cores != NULL && sim->by_id != NULL && sim->free_ids != NULL && sim->latency != NULL &&
             sim->apps != NULL && sim_events_init(&sim->events) && sim_noc_init(sim);
    }
    if (!ok) {
        sim_free(sim);
        say(error, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    struct csa_config sched = config->sched;
    if (sched.policy == CSA_OAT) /* within an application */
        sched.policy = CSA_RR;
    for (uint32_t i = 0; i < sim->n_cores; i++) {
        csa_init(&sim->cores[i].sched, &sched);
        sim->cores[i].number = (uint16_t)i;
        sim->idle[i / 64] |= UINT64_C(1) << i % 64;
    }
    for (uint32_t i = 0; i < SIM_MAX_THREADS; i++) /* the lowest are dealt out first */
        sim->free_ids[sim->n_free_ids++] = (uint16_t)(SIM_MAX_THREADS - 1 - i);
    return sim;
}

/* All but its results. */
static void trim_app(struct sim_app *app) {
    for (uint32_t i = 0; app->threads != NULL && i < app->n_threads; i++)
        free(app->threads[i]);
    for (struct sim_thread *t; (t = sim_shift(&app->late)) != NULL;)
        free(t);
    sim_objects_free(app);
    free(app->threads);
    free(app->joiners);
    free(app->begins);
    app->threads = NULL;
    app->joiners = NULL;
    app->begins = NULL;
}

void sim_trim(struct sim *sim) {
    for (uint32_t i = 0; i < sim->n_apps; i++)
        trim_app(&sim->apps[i]);
    sim->summary = sim_summary(sim);
    sim_noc_free(sim);
    sim_events_free(&sim->events);
    sim->trimmed = true;
}

static void free_app(struct sim_app *app) {
    trim_app(app);
    free(app->results);
    free(app->ended);
}

void sim_free(struct sim *sim) {
    if (sim == NULL)
        return;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        free_app(&sim->apps[i]);
    sim_noc_free(sim);
    sim_events_free(&sim->events);
    free(sim->apps);
    free(sim->cores);
    free(sim->by_id);
    free(sim->free_ids);
    free(sim->latency);
    free(sim);
}

/* ---- applications ---- */

/* What a killed program had not written can be that a thread was created: then it begins when it did. */
static bool find_begins(const struct sim *sim, struct sim_app *app) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    struct sbt_trace_error damage; /* is found again when it is replayed */
    size_t n = app->n_threads;
    app->begins = calloc(n, sizeof *app->begins);
    uint8_t *created = calloc(n, 1);
    if (app->begins == NULL || created == NULL) {
        free(created);
        return false;
    }
    const struct sim_app *same = sim->apps; /* the same trace again: it has been read */
    while (same->trace != app->trace)
        same++;
    for (uint32_t i = 0; i < n && same == app; i++) {
        sbt_trace_cursor_begin(app->trace, i, &cursor);
        app->begins[i] = UINT64_MAX;
        for (bool first = true; sbt_trace_next(&cursor, &event, &damage) > 0; first = false) {
            if (first)
                app->begins[i] = event.at_ns > event.work_ns ? event.at_ns - event.work_ns : 0;
            if (event.op == SBT_TRACE_THREAD_CREATE && event.other < n)
                created[event.other] = 1;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (same != app)
            app->begins[i] = same->begins[i];
        else if (i == 0 || created[i])
            app->begins[i] = UINT64_MAX;
    free(created);
    return true;
}

enum sim_status sim_add(struct sim *sim, const struct sbt_trace *trace, const char *name, struct sim_error *error) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct sbt_trace_cursor first;
    struct sbt_trace_event event;
    struct sbt_trace_error damage;
    if (sim->n_apps == SIM_MAX_APPLICATIONS)
        return say(error, SIM_USAGE, "more than %d applications", SIM_MAX_APPLICATIONS);
    if (info->n_threads == 0 || info->n_events == 0)
        return say(error, SIM_USAGE, "%s: an empty trace", name);
    sbt_trace_cursor_begin(trace, 0, &first);
    int r = sbt_trace_next(&first, &event, &damage);
    if (r < 0)
        return say(error, SIM_DAMAGED, "%s: at byte %ju: %s", name, (uintmax_t)damage.offset, damage.reason);
    if (r == 0 && info->whole)
        return say(error, SIM_USAGE, "%s: an empty trace: its first thread does nothing", name);
    struct sim_app *app = &sim->apps[sim->n_apps++];
    size_t n = info->n_threads;
    *app = (struct sim_app){
        .trace = trace, .n_threads = info->n_threads, .n_objects = info->n_objects, .number = sim->n_apps - 1};
    app->result.name = name;
    app->pages = calloc((app->n_objects + (size_t)SIM_PAGE - 1) / SIM_PAGE, sizeof(struct sim_page *));
    app->threads = calloc(n, sizeof(struct sim_thread *));
    app->results = calloc(n, sizeof *app->results);
    app->joiners = calloc(n, sizeof *app->joiners);
    app->ended = calloc(n, sizeof *app->ended);
    if ((app->pages == NULL && app->n_objects > 0) || app->threads == NULL || app->results == NULL ||
        app->joiners == NULL || app->ended == NULL)
        return say(error, SIM_NO_MEMORY, "%s: out of memory", name);
    if (!info->whole && !find_begins(sim, app))
        return say(error, SIM_NO_MEMORY, "%s: out of memory", name);
    return SIM_OK;
}

uint64_t sim_memory_bytes(const struct sim *sim) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->n_apps; i++) {
        const struct sim_app *app = &sim->apps[i];
        sum += app->n_threads * (sizeof(struct sim_thread) + sizeof *app->results + sizeof *app->joiners + 24);
        sum += (app->n_objects + (uint64_t)SIM_PAGE - 1) / SIM_PAGE * (sizeof(struct sim_page) + sizeof(void *));
    }
    return sum;
}

/* ---- the run ---- */

static inline void handle(struct sim *sim, enum sim_event_kind kind, const struct sim_event *event) {
    switch (kind) {
    case SIM_EV_CORE:
        sim_core_event(sim, event);
        break;
    case SIM_EV_REQUEST:
        sim_noc_request(sim, &event->packet);
        break;
    case SIM_EV_SEND:
        sim_noc_send(sim, &event->packet);
        break;
    case SIM_EV_ANSWER:
        sim_noc_answer(sim, &event->packet);
        break;
    case SIM_EV_TIMER:
        sim_timer_event(sim, event);
        break;
    case SIM_EV_BORN:
        sim_born_event(sim, event);
        break;
    }
}

enum sim_status sim_run(struct sim *sim, struct sim_error *error) {
    const struct sim_event *event;
    enum sim_event_kind kind;
    bool oat = sim->config.sched.policy == CSA_OAT;
    if (sim->n_apps == 0)
        return say(error, SIM_USAGE, "no application");
    sim->turn = (struct csa_turn){.n_applications = sim->n_apps};
    sim->n_running = sim->n_apps;
    for (uint32_t i = 0; i < sim->n_apps && sim->status == SIM_OK; i++)
        if (!oat || csa_may_run(&sim->turn, i))
            sim_start(sim, &sim->apps[i]);
    do {
        while (sim->status == SIM_OK && (event = sim_events_take(&sim->events, &kind)) != NULL) {
            sim->summary.n_steps++;
            handle(sim, kind, event);
        }
    } while (sim->status == SIM_OK && sim->n_running > 0 && sim_give_up(sim));
    if (sim->events.no_memory)
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
    if (sim->events.past)
        sim_fail(sim, SIM_DAMAGED, "virtual time runs backwards after %ju ns", (uintmax_t)sim_now(sim));
    if (sim->status == SIM_OK && sim->n_running > 0) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < sim->n_apps; i++)
            n += sim->apps[i].n_alive;
        sim_fail(sim, SIM_STUCK, "%u threads wait for what does not happen", n);
    }
    *error = sim->error;
    return sim->status;
}
