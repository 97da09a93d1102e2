/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine: network interfaces and mesh. */
#ifndef SIM_NOC_H
#define SIM_NOC_H

#include "chip.h"

bool sim_noc_init(struct sim *sim); /* false: no memory */
void sim_noc_free(struct sim *sim);

/*
 * Send a request about an object's primitive, from the thread's core to the primitive's home. o: NULL if the ID was not
 * read from an object, which may have lost it.
 */
void sim_noc_post(struct sim *sim, struct sim_thread *t, enum hw_op op, struct sim_object *o, uint32_t id);
/* What sim_noc_post sends. */
struct hw_packet sim_noc_packet(const struct sim *sim, const struct sim_thread *t, enum hw_op op,
                                const struct sim_object *o, uint32_t id);
void sim_noc_post_alloc(struct sim *sim, struct sim_thread *t, enum hw_op op, uint32_t tile, uint32_t flit1);
/* The same about an ID, for no thread: an answer is not taken up. */
void sim_noc_post_absent(struct sim *sim, struct sim_thread *t, enum hw_op op, uint32_t id);
/* The thread's answer, decoded. */
struct hw_message sim_noc_answer_of(const struct sim *sim, const struct sim_thread *t);

/* Events. The packet may belong to an event that has been taken: it is not read after another event is put in. */
void sim_noc_request(struct sim *sim, const struct hw_packet *arrived); /* it has arrived at its home */
void sim_noc_send(struct sim *sim, const struct hw_packet *packet);     /* it is ready to leave an NI */
void sim_noc_answer(struct sim *sim, const struct hw_packet *packet);   /* it has arrived at its core */

/* When the header of a packet that is ready at `ready` arrives. The first one also counts latencies. */
uint64_t sim_noc_arrival_counted(struct sim *sim, uint32_t from, uint32_t to, uint64_t ready);
static inline uint64_t sim_noc_arrival(struct sim *sim, uint32_t from, uint32_t to, uint64_t ready) {
    if (__builtin_expect(sim->packets != NULL, 0))
        return sim_noc_arrival_counted(sim, from, to, ready);
    return hw_mesh_arrival(&sim->mesh, from, to, ready);
}

/* The packet leaves NI `from` at `ready`. */
static inline void sim_noc_leave(struct sim *sim, const struct hw_packet *packet, uint32_t from, uint64_t ready) {
    uint32_t to = hw_packet_destination(&sim->layout, packet);
    uint64_t at = sim_noc_arrival(sim, from, to, ready) + hw_mesh_tail(&sim->mesh, from, to);
    sim_events_put_packet(&sim->events, at, SIM_EV_ANSWER, packet, sim->by_id[hw_high(packet->flit[2])]);
}

#endif
