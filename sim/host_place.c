/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host_place.h"

enum {
    LOOK_AT = 16,          /* threads of a run queue that an idle core looks at */
    MOVED_MOST = 32,       /* threads that a balance moves (sysctl_sched_nr_migrate) */
    NO_PROGRESS_NS = 5000, /* a carrier makes none if a fiber runs for that long, divided by those that wait there */
};

/* ---- threads that are ready change the core ---- */

static bool is_hot(const struct sim *sim, const struct sim_thread *t) {
    return sim_now(sim) - t->host.ran_at < sim->host->model.hot_ns;
}

static bool makes_progress(const struct sim *sim, const struct sim_host_core *carrier) {
    return carrier->on != NULL && carrier->on->host.picked_at + NO_PROGRESS_NS / carrier->n_ready > sim_now(sim);
}

/* The first core with the longest run queue. Of carriers, one that makes no progress. */
static struct sim_host_core *longest(struct sim *sim, const struct sim_host_core *but) {
    struct sim_host_core *longest = NULL;
    for (uint32_t word = 0; word <= (sim->n_cores - 1) / 64; word++) {
        for (uint64_t bits = sim->host->queues[word]; bits != 0; bits &= bits - 1) {
            struct sim_host_core *core = &sim->host->cores[word * 64 + (uint32_t)__builtin_ctzll(bits)];
            if (core != but && core->n_ready > (longest != NULL ? longest->n_ready : 0) &&
                !sim_host_is_server(sim, core->number) && !(sim->host->fibers && makes_progress(sim, core)))
                longest = core;
        }
    }
    return longest;
}

/* False: no memory, and the run has failed. */
static bool move(struct sim *sim, struct sim_host_core *from, struct sim_host_core *to, uint32_t place) {
    struct sim_thread *t = sim_host_take_at(sim, from, place);
    uint64_t slice = (uint64_t)(t->host.deadline - t->host.v);
    sim_host_leave(sim, from, t);
    sim_host_join(sim, to, t, slice);
    sim->summary.n_migrations++;
    return sim_host_push(sim, to, t);
}

bool sim_host_steal(struct sim *sim, struct sim_host_core *core) {
    struct sim_host_core *from = sim->n_ready > 0 && sim->config.migrate ? longest(sim, core) : NULL;
    if (from == NULL)
        return false;
    if (sim->host->fibers) {
        uint32_t n = (from->n_ready + 1) / 2, n_taken = sim_host_take_fibers(sim, from, core, n);
        sim->summary.n_migrations += n_taken;
        for (n -= n_taken; n > 0; n--)
            if (!move(sim, from, core, 0))
                return false;
        return true;
    }
    for (uint32_t i = from->n_ready; i-- > 0 && from->n_ready - i <= LOOK_AT;)
        if (!is_hot(sim, from->queue[i]))
            return move(sim, from, core, i);
    return false;
}

/* Half of the difference, one thread at least. */
static bool move_half(struct sim *sim, struct sim_host_core *from, struct sim_host_core *to) {
    uint32_t n = (sim_host_n_here(from) - sim_host_n_here(to)) / 2;
    n = n < MOVED_MOST ? n : MOVED_MOST;
    do
        if (!move(sim, from, to, from->n_ready - 1))
            return false;
    while (n-- > 1 && from->n_ready > 0);
    return true;
}

static struct sim_host_core *shortest(struct sim *sim) {
    struct sim_host_core *shortest = &sim->host->cores[0];
    for (uint32_t i = 1; i < sim->n_cores; i++)
        if (sim_host_n_here(&sim->host->cores[i]) < sim_host_n_here(shortest))
            shortest = &sim->host->cores[i];
    return shortest;
}

struct sim_host_core *sim_host_balance(struct sim *sim, struct sim_host_core *core) {
    if (sim_now(sim) < core->balance_at || !sim_host_has(sim, SIM_HOST_BALANCE) || !sim->config.migrate)
        return NULL;
    core->balance_at = sim_now(sim) + sim->host->model.balance_ns;
    struct sim_host_core *to = shortest(sim);
    if (core->n_ready == 0 || to->on == NULL || sim_host_n_here(core) <= sim_host_n_here(to))
        return NULL;
    /* A difference of a single thread is left alone every other time. */
    if (sim_host_n_here(core) - sim_host_n_here(to) < 2 && ++core->n_balances % 2 != 0)
        return NULL;
    sim_host_count(sim, to);
    return move_half(sim, core, to) ? to : NULL;
}

struct sim_host_core *sim_host_help_idle(struct sim *sim, struct sim_host_core *core) {
    struct sim_host_core *idle = sim->config.migrate ? sim_host_find_idle(sim, core->number) : NULL;
    if (idle == NULL || core->n_ready == 0)
        return NULL;
    return move_half(sim, core, idle) ? idle : NULL;
}

/* ---- threads that come ---- */

struct sim_host_core *sim_host_place_woken(struct sim *sim, const struct sim_thread *t,
                                           const struct sim_thread *waker) {
    struct sim_host_core *last = sim_host_core_of(sim, t), *idle;
    if ((t->host.delayed && !sim_host_has_paid(sim, last, t)) || sim_host_is_idle(sim, last->number) ||
        !sim->config.migrate || sim_host_is_server(sim, last->number))
        return last; /* it is there still, or has waited in a section, and that goes on */
    if ((idle = sim_host_find_idle(sim, last->number)) != NULL)
        return idle;
    if (waker != NULL && !sim_host_is_server(sim, waker->core) &&
        sim_host_n_here(sim_host_core_of(sim, waker)) + 2 <= sim_host_n_here(last))
        return sim_host_core_of(sim, waker);
    return last;
}

struct sim_host_core *sim_host_place_new(struct sim *sim) {
    struct sim_host_core *core = sim_host_find_idle(sim, sim->n_placed++ % sim->n_cores);
    uint32_t n_servers = sim->host->model.n_servers, n_workers = sim->n_cores - n_servers;
    for (uint32_t i = 0; core == NULL && i < n_workers; i++) {
        struct sim_host_core *other = &sim->host->cores[n_servers + (sim->n_placed + i) % n_workers];
        bool fewest = true;
        for (uint32_t k = n_servers; k < sim->n_cores && fewest; k++)
            fewest = sim_host_n_here(other) <= sim_host_n_here(&sim->host->cores[k]);
        core = fewest ? other : NULL;
    }
    return sim->config.migrate ? core : &sim->host->cores[n_servers + sim->n_placed % n_workers];
}
