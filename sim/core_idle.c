/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core.h"

static struct sim_core *longest_queue(struct sim *sim) {
    struct sim_core *longest = NULL;
    for (uint32_t i = 0; i < sim->n_cores; i++)
        if (sim->cores[i].sched.n_ready > (longest != NULL ? longest->sched.n_ready : 0))
            longest = &sim->cores[i];
    return longest;
}

struct sim_thread *sim_core_steal(struct sim *sim, struct sim_core *core) {
    struct sim_core *from = sim->config.migrate && sim->n_ready > 0 ? longest_queue(sim) : NULL;
    if (from == NULL)
        return NULL;
    struct csa_thread *t = csa_first(&from->sched);
    csa_remove(&from->sched, t, sim_now(sim));
    csa_add(&core->sched, t, sim_now(sim));
    struct sim_thread *thread = (struct sim_thread *)(void *)t;
    thread->core = (uint16_t)core->number;
    from->n_spinning -= thread->spins;
    core->n_spinning += thread->spins;
    sim->summary.n_migrations++;
    return thread;
}

struct sim_core *sim_core_find_idle(struct sim *sim) {
    struct sim_core *soon = NULL;
    for (uint32_t word = 0; word < (sim->n_cores + 63) / 64; word++)
        for (uint64_t bits = sim->idle[word]; bits != 0; bits &= bits - 1) {
            struct sim_core *core = &sim->cores[word * 64 + (uint32_t)__builtin_ctzll(bits)];
            if (sim_core_idle_from(sim, core) <= sim_now(sim))
                return core;
            if (!core->armed && (soon == NULL || sim_core_idle_from(sim, core) < sim_core_idle_from(sim, soon)))
                soon = core;
        }
    if (soon != NULL)
        sim_core_arm(sim, soon, sim_core_idle_from(sim, soon));
    return NULL;
}
