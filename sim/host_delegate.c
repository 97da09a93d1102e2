/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host_delegate.h"

#include "host_sched.h"
#include "host_wait.h"
#include "owner.h"

static uint64_t way_ns(const struct sim *sim) {
    return sim_host_has(sim, SIM_HOST_LINES) ? sim->host->model.line_ns : 0;
}

static void arrive(struct sim *sim, struct sim_thread *t);

/* It has been handed the mutex; or its wait has ended because none would have ended it. */
static void waited_at_server(struct sim *sim, struct sim_thread *t) {
    if (t->mutex->owner == t)
        t->locked(sim, t);
    else
        arrive(sim, t);
}

/* Its section is the server's, until the thread loses the mutex. */
static void acquired(struct sim *sim, struct sim_thread *t, struct sim_object *m) {
    sim_owner_acquired(sim, t, m);
    m->served = true;
    t->host.n_served++;
}

static void arrive(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    if (m->owner != NULL) {
        t->queued_lock = true;
        sim_list_append(&m->waiters, t);
        sim_core_wait(sim, t, SIM_WHY_OBJECT, waited_at_server);
        return;
    }
    acquired(sim, t, m);
    t->locked(sim, t);
}

static void depart(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    uint32_t server = (m->number + m->application) % sim->host->model.n_servers;
    if (!sim_host_is_server(sim, t->core))
        t->host.worker = t->core;
    if (t->core == server)
        arrive(sim, t);
    else
        sim_host_move(sim, t, &sim->host->cores[server], way_ns(sim), arrive);
}

void sim_host_delegate_lock(struct sim *sim, struct sim_thread *t) {
    sim_host_run(sim, t, sim->host->model.lock_ns, depart);
}

static struct sim_host_core *worker_of(struct sim *sim, const struct sim_thread *t) {
    struct sim_host_core *last = &sim->host->cores[t->host.worker], *idle;
    if (sim_host_is_idle(sim, last->number) || !sim->config.migrate)
        return last;
    return (idle = sim_host_find_idle(sim, last->number)) != NULL ? idle : last;
}

static void is_back(struct sim *sim, struct sim_thread *t) {
    t->unlocked(sim, t);
}

/*
 * The thread may unlock in vain: a wait that ended because none would have ended it took the mutex from it
 * (replay_pass.c). It goes back then, too.
 */
static void release(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->mutex;
    if (m->owner != NULL)
        sim_owner_released(sim, m);
    struct sim_thread *next = sim_list_shift(&m->waiters);
    if (next != NULL) {
        acquired(sim, next, m);
        sim_core_wake(sim, next, 0);
    } else {
        sim_host_notice(sim, m, false); /* threads that poll */
    }
    if (sim_host_is_server(sim, t->core) && t->host.n_served == 0)
        sim_host_move(sim, t, worker_of(sim, t), way_ns(sim), is_back);
    else
        t->unlocked(sim, t);
}

void sim_host_delegate_unlock(struct sim *sim, struct sim_thread *t) {
    sim_host_run(sim, t, sim->host->model.unlock_ns, release);
}
