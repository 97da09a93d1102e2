/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The optical network beside the mesh (SIM_ATAC, SIM_OPTICAL): emu_hw/optical.h, driven by the chip's events.
 *
 * A barrier and a condition have a virtual channel each, while there are channels; the others are served without it. A
 * core has a port of a channel while its threads wait there: it is subscribed, and keeps what its threads share. The
 * threads of a port take the messages of its core's buffer one by one. The network does not bring a core its own
 * messages.
 *
 *   barrier    vc_barrier.c: as the barrier of the thesis (atac/barrier.c)
 *   condition  a broadcast is one message. The condition's NI gets it as its request to move all waiters to the mutex's
 *              queue. The waiters' cores get it too: a thread that has kept its core knows that its wait is over, and
 *              does not need the way back when its mutex is granted. Without NIs the message wakes all waiters at once.
 *              Ours: the thesis has no conditions
 */
#ifndef SIM_BROADCAST_H
#define SIM_BROADCAST_H

#include "chip.h"
#include "core.h"
#include "optical.h"

/* How many messages of an episode the port's core has, of those that are needed. */
struct sim_count {
    uint64_t episode;
    uint32_t n;
};

struct sim_port {
    struct sim_channel *channel;
    struct sim_port *next; /* of the channel's ports */
    uint16_t core;
    bool armed;               /* an event of this generation is under way */
    uint32_t generation;      /* of its events */
    uint64_t from;            /* messages of the channel before this one were there when the port was made: `waiting` */
    uint32_t n_waiting;       /* of them, how many no thread has taken yet, */
    uint64_t waiting_episode; /* all of this episode */
    uint32_t waiting_of;
    uint64_t last_episode; /* of the last arrival of its threads */
    struct sim_count *counts;
    uint32_t n_counts, counts_capacity;
    struct sim_thread *waiters; /* linked by vc.next */
    struct sim_thread *reader;  /* of them: the one that takes messages. NULL: none */
    bool listens;               /* `come` is called for each message, also without a reader */
    uint32_t n_for_ni;          /* messages under way that are requests for the NI of this core */
};

struct sim_channel {
    struct sim_object *object;
    uint32_t number, serial; /* a number may be another channel's later */
    uint64_t n_sent;
    uint64_t episode; /* of the barrier: the one for which threads arrive now, */
    uint32_t arrived; /* and how many have */
    struct sim_port *ports;
    struct sim_port **port_of;                            /* by core; NULL: it has none */
    void (*come)(struct sim *sim, struct sim_port *port); /* a message can be taken at the port */
};

/* What a message says, by its slot in the network. */
struct sim_note {
    uint32_t serial;          /* of its channel */
    uint64_t number;          /* of the channel's messages */
    uint64_t episode;         /* of a barrier: it is an arrival for this episode, */
    uint32_t of;              /* of so many */
    struct hw_packet request; /* of a broadcast: for the condition's NI */
};

struct sim_broadcast {
    struct hw_optical net;
    void *memory;
    struct sim_note *notes;
    struct sim_channel **channels; /* by number; NULL: free */
    uint32_t n_serials;
    uint64_t n_found; /* messages that threads took which their port had from the beginning */
};

bool sim_broadcast_init(struct sim *sim); /* false: no memory */
void sim_broadcast_free(struct sim *sim);
void sim_broadcast_add(const struct sim *sim, struct sim_summary *summary);

/* The object's channel. NULL: no channel is free, or there is no memory. */
struct sim_channel *sim_broadcast_channel(struct sim *sim, struct sim_object *o,
                                          void (*come)(struct sim *sim, struct sim_port *port));
/* The object has gone. */
void sim_broadcast_forget(struct sim *sim, struct sim_object *o);

/* The core's port; it is made if there is none. NULL: there is no memory, and the run has failed. */
struct sim_port *sim_broadcast_port(struct sim *sim, struct sim_channel *channel, uint32_t core);
/* No thread waits there. */
void sim_broadcast_drop_port(struct sim *sim, struct sim_port *port);

/* From this core, now. The caller has spent interface_cycles. */
void sim_broadcast_send(struct sim *sim, struct sim_channel *channel, uint32_t core, struct sim_note note);
/* Takes the first message that the port's core has. False: there is none now. */
bool sim_broadcast_take(struct sim *sim, struct sim_port *port, struct sim_note *note);
/* Calls `come` when there may be a message. */
void sim_broadcast_arm(struct sim *sim, struct sim_port *port);
void sim_broadcast_event(struct sim *sim, const struct sim_event *event);

/* A message costs its core so much to take: a look, and the interface. */
static inline uint64_t sim_broadcast_take_cycles(const struct sim *sim) {
    return (uint64_t)sim->config.optical.check_cycles + sim->config.interface_cycles;
}

/* What a thread that has given its core away needs to come back for a message: as from an NI, or from a futex. */
static inline uint64_t sim_broadcast_back_cycles(const struct sim *sim) {
    return sim_sync_has_nis(sim->config.sync) ? sim->hw.timing.resume_cycles : sim->config.costs.kernel_ns;
}

static inline bool sim_broadcast_waits(const struct sim_thread *t) {
    return t->place == SIM_AWAKE || t->place == SIM_ASLEEP;
}

/* ---- broadcast_cond.c ---- */

/* The thread is about to wait at the condition: its core listens. */
void sim_broadcast_listen(struct sim *sim, struct sim_thread *t, struct sim_object *condition);
/* It does not wait any longer. */
void sim_broadcast_listen_end(struct sim *sim, struct sim_thread *t);
/* The thread broadcasts, then `then`. False: the condition has no channel. With NIs: */
bool sim_broadcast_condition(struct sim *sim, struct sim_thread *t, sim_then *then);
/* Without: t->targets, which are at ports of the condition, are woken by the message. */
bool sim_broadcast_targets(struct sim *sim, struct sim_thread *t, sim_then *then);

#endif
