/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One step of an NI and the packets that leave. For the NI's server (serve.c), under the tile's lock. */
#ifndef SBT_ENGINE_NI_STEP_H
#define SBT_ENGINE_NI_STEP_H

#include "engine/ni/bounds.h"
#include "engine/ni/record.h"
#include "engine/ni/tile.h"

/* Work for the time after the tile's lock has been released. */
struct ni_work {
    const struct ni_thread *self; /* it serves its own request; meanwhile no other thread writes its record */
    uint32_t *opened;             /* wake all threads that sleep on this epoch */
    uint32_t n_wakes, n_touched;
    uint32_t *wakes[NI_MAX_WAKES];
    struct ni_tile *touched[NI_MAX_TOUCHED]; /* tiles to which something was sent */
};

static inline uint32_t ni_handover(void) {
    return ni_machine.config.timing.handover_cycles;
}

static inline uint32_t ni_resume(const struct hw_packet *answer) {
    return hw_packet_ends_wait(answer) ? ni_machine.config.timing.resume_cycles : 0;
}

/* Send a packet over the mesh; it takes time only if the machine is timed. The caller has `tile`'s lock. */
struct hw_delivery ni_send(struct ni_tile *tile, uint32_t from, uint32_t to, uint64_t at_cycles);

/*
 * The request's turn has come. `slot`: its slot in a mailbox, set free before any thread learns of the outcome; NULL:
 * it has none.
 */
void ni_step_request(struct ni_tile *tile, struct ni_request *r, struct ni_request *slot, struct ni_work *work);

/* The same for a request that was in no mailbox, because its own thread serves it. */
void ni_step_direct(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin,
                    struct ni_work *work);

#endif
