/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The barrier of section 5.1 of the ATAC thesis, for recorded programs: each thread broadcasts that it has come, and
 * goes on when its core has a message of each of the others. With one thread on each core the times are those of
 * atac/barrier.c, to the cycle (tests/sim/atac_test.c).
 *
 * A recorded program may have more threads than the chip has cores, and threads that change their core. Ours: the
 * threads of a core share a port and its counts. A thread counts itself at its own core. The thread that has come last
 * takes the messages, since the others may have given their core away. It takes them one by one; the one that makes
 * the episode complete ends the waits of all of them. A thread that had given its core away comes back by an interrupt,
 * as from an NI, or through the kernel.
 *
 * A message says its episode, and a count is kept for each episode: a message of the next one may come earlier than the
 * last one of this.
 */
#include "vc_barrier.h"

#include "return.h"

#define NOT_YET UINT64_MAX /* in the place of an episode: the thread has not sent its message */

static void look_at_port(struct sim *sim, struct sim_thread *t);

/* ---- the port's threads ---- */

static void wake_waiter(struct sim *sim, struct sim_thread *t, uint64_t cycles) {
    if (sim_broadcast_waits(t))
        sim_core_wake(sim, t, cycles + (t->place == SIM_ASLEEP ? sim_broadcast_back_cycles(sim) : 0));
}

/* There may be a message for the port. */
static void message_came(struct sim *sim, struct sim_port *port) {
    if (port->reader != NULL)
        wake_waiter(sim, port->reader, 0);
}

static void leave_port(struct sim *sim, struct sim_thread *t) {
    struct sim_port *port = t->vc.port;
    struct sim_thread **link = &port->waiters;
    while (*link != t)
        link = &(*link)->vc.next;
    *link = t->vc.next;
    t->vc.port = NULL;
    if (port->reader != t)
        return;
    port->reader = port->waiters;
    while (port->reader != NULL && (port->reader->vc.done || port->reader->vc.episode == NOT_YET))
        port->reader = port->reader->vc.next;
    if (port->reader != NULL)
        sim_broadcast_arm(sim, port);
}

static void complete_episode(struct sim *sim, struct sim_port *port, uint64_t episode, const struct sim_thread *taker) {
    for (struct sim_thread *w = port->waiters, *next; w != NULL; w = next) {
        next = w->vc.next;
        if (w->vc.episode != episode || w->vc.done)
            continue;
        w->vc.done = true;
        if (w != taker)
            wake_waiter(sim, w, sim->config.optical.check_cycles);
    }
}

/* ---- counting ---- */

/* One more arrival is known at the port. taker: the thread that says so; it need not be woken. */
static void count_arrival(struct sim *sim, struct sim_port *port, uint64_t episode, uint32_t of,
                          const struct sim_thread *taker) {
    uint32_t i = 0;
    while (i < port->n_counts && port->counts[i].episode != episode)
        i++;
    if (i == port->n_counts) {
        if (i == port->counts_capacity) {
            uint32_t n = i == 0 ? 2 : 2 * i;
            struct sim_count *counts = realloc(port->counts, n * sizeof *counts);
            if (counts == NULL) {
                sim_fail(sim, SIM_NO_MEMORY, "out of memory");
                return;
            }
            port->counts = counts;
            port->counts_capacity = n;
        }
        port->counts[port->n_counts++] = (struct sim_count){.episode = episode};
    }
    if (++port->counts[i].n < of)
        return;
    port->counts[i] = port->counts[--port->n_counts];
    complete_episode(sim, port, episode, taker);
}

static void arrival_counted(struct sim *sim, struct sim_thread *t) {
    count_arrival(sim, t->vc.port, t->vc.counts, t->vc.of, t);
    look_at_port(sim, t);
}

/* A thread that was moved to another core while it slept reads its port's memory from there. */
static uint64_t way_to(const struct sim *sim, const struct sim_thread *t) {
    if (t->core == t->vc.port->core)
        return 0;
    return 2 * hw_mesh_distance(&sim->mesh, t->core, t->vc.port->core).head_cycles + sim->config.costs.line_flits;
}

static void look_at_port(struct sim *sim, struct sim_thread *t) {
    struct sim_note note;
    if (t->vc.done) {
        leave_port(sim, t);
        sim_return(sim, t);
    } else if (t->vc.port->reader == t && sim_broadcast_take(sim, t->vc.port, &note)) {
        t->vc.counts = note.episode;
        t->vc.of = note.of;
        sim_core_run(sim, t, sim_broadcast_take_cycles(sim) + way_to(sim, t), arrival_counted);
    } else {
        sim_core_wait(sim, t, SIM_WHY_OBJECT, look_at_port);
        if (t->vc.port->reader == t)
            sim_broadcast_arm(sim, t->vc.port);
    }
}

/* ---- arriving ---- */

/* Cores that have not waited here for two episodes do not listen any longer. */
static void drop_unused(struct sim *sim, struct sim_channel *channel) {
    for (struct sim_port *port = channel->ports, *next; port != NULL; port = next) {
        next = port->next;
        if (port->waiters == NULL && port->last_episode + 2 < channel->episode)
            sim_broadcast_drop_port(sim, port);
    }
}

static void arrive_at_barrier(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    struct sim_channel *channel = b->channel;
    struct sim_port *port = t->vc.port;
    uint64_t episode = channel->episode;
    port->last_episode = episode;
    port->reader = t;
    t->vc.episode = episode;
    sim_broadcast_send(sim, channel, port->core, (struct sim_note){.episode = episode, .of = b->size});
    if (++channel->arrived >= b->size) {
        channel->episode++;
        channel->arrived = 0;
        drop_unused(sim, channel);
    }
    count_arrival(sim, port, episode, b->size, t);
    look_at_port(sim, t);
}

bool sim_vc_barrier(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    if (b->without_channel)
        return false;
    if (sim_broadcast_channel(sim, b, message_came) == NULL) {
        sim->summary.n_without_channel++;
        b->without_channel = true;
        return false;
    }
    struct sim_port *port = sim_broadcast_port(sim, b->channel, t->core);
    if (port == NULL)
        return true;
    port->waiting_of = b->size;
    t->vc.port = port;
    t->vc.done = false;
    t->vc.episode = NOT_YET;
    t->vc.next = port->waiters;
    port->waiters = t;
    sim_core_run(sim, t, sim->config.interface_cycles, arrive_at_barrier);
    return true;
}

void sim_vc_barrier_pass(struct sim *sim, struct sim_object *barrier) {
    struct sim_channel *channel = barrier->channel;
    uint64_t episode = channel->episode++;
    channel->arrived = 0;
    for (struct sim_port *port = channel->ports; port != NULL; port = port->next)
        complete_episode(sim, port, episode, NULL);
}
