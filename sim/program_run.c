/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program's chip: made, run, freed, asked. */
#include "program.h"

#include "program_share.h"

struct sim_program_config sim_program_config_default(void) {
    return (struct sim_program_config){.n_cores = 64,
                                       .optical = hw_optical_config_default(),
                                       .memory = {.hit_cycles = 1,
                                                  .directory_cycles = 10,
                                                  .dram_cycles = 100,
                                                  .line_flits = 18,
                                                  .invalidate_flits = HW_MESH_N_FLITS,
                                                  .system_cycles = 100,
                                                  .server_cycles = 100},
                                       .timing = hw_timing_default(),
                                       .stack_bytes = 65536};
}

/* ---- the chip ---- */

static bool refuse(struct sim_error *error, const char *what) {
    snprintf(error->text, sizeof error->text, "impossible chip: %s", what);
    return false;
}

static bool check(const struct sim_program_config *config, struct sim_error *error) {
    if (config->n_cores < 1 || config->n_cores > SIM_MAX_CORES)
        return refuse(error, "cores");
    if (config->n_threads < 1 || config->n_threads > SIM_MAX_CORES)
        return refuse(error, "threads");
    if (config->stack_bytes < 4096 || config->stack_bytes > SIM_PROGRAM_MAX_STACK)
        return refuse(error, "bytes of a stack");
    const char *why = hw_optical_refusal(&config->optical);
    return why == NULL || refuse(error, why);
}

static bool make_mesh(struct sim_program *p) {
    struct hw_mesh_config mesh = hw_mesh_config_default();
    mesh.timing = p->config.timing;
    for (mesh.width = 1; mesh.width * mesh.width < p->config.n_cores;)
        mesh.width++;
    mesh.height = (p->config.n_cores + mesh.width - 1) / mesh.width;
    p->ports = sim_line_zeroed(hw_mesh_bytes(mesh.width, mesh.height));
    return p->ports != NULL && hw_mesh_init(&p->mesh, &mesh, p->ports);
}

struct sim_program *sim_program_new(const struct sim_program_config *config, struct sim_error *error) {
    struct sim_program_config own = *config;
    own.optical.n_cores = config->n_cores;
    own.n_threads = config->n_threads != 0 ? config->n_threads : config->n_cores;
    if (!check(&own, error))
        return NULL;
    struct sim_program *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->config = own;
        p->threads = calloc(own.n_threads, sizeof *p->threads);
        p->optical_memory = sim_line_zeroed(hw_optical_bytes(&own.optical));
    }
    if (p == NULL || p->threads == NULL || p->optical_memory == NULL || !sim_events_init(&p->events) || !make_mesh(p) ||
        !hw_optical_init(&p->optical, &own.optical, p->optical_memory) || !sim_share_init(p)) {
        sim_program_free(p);
        snprintf(error->text, sizeof error->text, "no memory for %u cores", own.n_cores);
        return NULL;
    }
    return p;
}

void sim_program_free(struct sim_program *p) {
    if (p == NULL)
        return;
    sim_share_free(p);
    for (uint32_t i = 0; i < p->n_threads; i++)
        sim_stack_free(&p->threads[i].stack);
    for (uint32_t i = 0; i < p->optical.n_slots; i++)
        free(p->slots[i].data);
    sim_events_free(&p->events);
    free(p->slots);
    free(p->optical.nodes);
    free(p->optical.slots);
    free(p->optical_memory);
    free(p->lines);
    free(p->ports);
    free(p->threads);
    free(p);
}

/* ---- the run ---- */

static void entry(void *argument) {
    struct sim_fiber *t = argument;
    struct sim_program *p = t->program;
    sim_stack_begun();
    t->body(p, t->argument);
    sim_fiber_settle(p, t);
    t->ended = true;
    t->wait = SIM_FOR_TIME; /* no other thread calls it any more */
    t->generation++;
    p->n_living--;
    p->end_cycles = sim_program_now(p);
    sim_fiber_leave(p, &t->stack);
}

enum sim_status sim_program_spawn(struct sim_program *p, sim_program_body *body, void *argument,
                                  struct sim_error *error) {
    if (p->n_threads == p->config.n_threads)
        return sim_refuse(error, SIM_USAGE, "more threads than %u %s", p->n_threads,
                          p->n_threads == p->config.n_cores ? "cores" : "threads of the configuration");
    struct sim_fiber *t = &p->threads[p->n_threads];
    *t = (struct sim_fiber){.number = p->n_threads,
                            .core = p->n_threads % p->config.n_cores,
                            .then = sim_fiber_goes_on,
                            .alarm = UINT64_MAX,
                            .body = body,
                            .argument = argument,
                            .program = p};
    if (!sim_stack_new(&t->stack, p->config.stack_bytes, entry, t))
        return sim_refuse(error, SIM_NO_MEMORY, "no memory for the stack of thread %u", t->number);
    p->n_threads++;
    p->n_living++;
    sim_fiber_call(p, t, sim_program_now(p));
    return SIM_OK;
}

static void tell_stuck(struct sim_program *p) {
    for (uint32_t i = 0; i < p->n_threads; i++) {
        const struct sim_fiber *t = &p->threads[i];
        if (t->ended)
            continue;
        if (t->wait == SIM_FOR_MESSAGE)
            sim_refuse(&p->error, SIM_STUCK, "thread %u waits for a message of channel %u for ever", i, t->channel);
        else
            sim_refuse(&p->error, SIM_STUCK, "thread %u waits for shared word %u for ever", i, t->word);
        p->status = SIM_STUCK;
        return;
    }
}

enum sim_status sim_program_run(struct sim_program *p, struct sim_error *error) {
    sim_fiber_leave(p, &p->stack);
    if (p->status == SIM_OK && (p->events.no_memory || p->events.past))
        p->status = sim_refuse(&p->error, SIM_NO_MEMORY, "no memory for events");
    if (p->status == SIM_OK && p->n_living != 0)
        tell_stuck(p);
    *error = p->error;
    return p->status;
}

uint64_t sim_program_cycles(const struct sim_program *p) {
    return p->end_cycles;
}

uint64_t sim_program_n_events(const struct sim_program *p) {
    return p->n_events;
}

const struct hw_optical *sim_program_optical(const struct sim_program *p) {
    return &p->optical;
}

uint64_t sim_program_n_transfers(const struct sim_program *p) {
    return p->n_transfers;
}
